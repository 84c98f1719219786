//! A coding agent follows `integrations/skill/forge-eval`: it drafts cases, karat checks them, a person approves them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::forge_terminal::TerminalSession;
use crate::support::project;

const TOOL: &str = "find_order";
const DRAFTS: &str = ".karat/drafts/find_order.json";

/// Creates a project with four tools, an overlap, a cluster and a seed manifest.
fn order_project() -> TempProject {
    let tool = |name: &str, category: &str, description: &str, schema: Value| {
        json!({"name": name, "version": "1.0.0", "category": category, "description": description,
            "inputSchema": {"type": "object", "properties": schema}})
    };
    let text = || json!({"type": "string"});
    let mut find = tool(
        TOOL,
        "read",
        "Looks up one order of a customer by its number. Use when the user asks where an order is or what is in it. For a \
         list of all orders, use list_orders instead.",
        json!({"orderId": text()}),
    );
    find["triggerPhrases"] =
        json!(["Where is my order 1042?", "What is in order 1042?", "Has order 1042 left the depot?"]);
    let tools = json!({"tools": [
        find,
        tool(
            "list_orders",
            "read",
            "Lists all orders of a customer, newest first. Use when the user asks for an overview of their orders. For \
             one order by its number, use find_order instead.",
            json!({"customer": text()}),
        ),
        tool(
            "track_parcel",
            "read",
            "Fetches the scan events of a parcel from the carrier. Use when the user asks which stations a parcel passed.",
            json!({"parcelId": text()}),
        ),
        tool(
            "send_mail",
            "write",
            "Sends a mail to the customer. Use when the user wants a confirmation in writing.",
            json!({"to": text(), "body": text()}),
        ),
    ]});
    let map = json!({
        TOOL: {
            "overlaps": ["list_orders"],
            "clusters": [[TOOL, "list_orders", "track_parcel"]],
            "reason": "both show orders of a customer",
        },
        "list_orders": {"overlaps": [TOOL]},
    });
    project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", tools)
        .file("evals/overlap-map.json", map)
        .file("evals/seed-manifest.json", json!({"order": {"id": "1042", "carrier": "Nordpost", "depot": "Tromsø"}}))
        .env("GIT_AUTHOR_NAME", "Ada")
}

fn eval_files(project: &TempProject) -> Vec<String> {
    let files = project.files_in("evals", ".json");
    files.iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

/// A simulated coding agent and its drafts by id.
struct Agent<'p> {
    project: &'p TempProject,
    brief: Value,
    drafts: BTreeMap<String, Value>,
}

/// A finding about a draft: its id, the severity and the rule.
type Finding = (String, String, String);

impl<'p> Agent<'p> {
    /// Reads the brief and drafts a case for each open slot.
    fn start(project: &'p TempProject) -> Self {
        let output = project.run(["forge", TOOL, "--brief", "--format", "json"]);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.both());
        let brief: Value = serde_json::from_str(&output.stdout).expect("valid brief");
        let mut agent = Self { project, brief, drafts: BTreeMap::new() };
        agent.drafts = agent.slots().into_iter().map(|slot| (id(&slot), agent.draft(&slot))).collect();
        agent
    }

    fn slots(&self) -> Vec<Value> {
        self.brief["slots"].as_array().expect("slots").clone()
    }

    fn slot(&self, matches: impl Fn(&Value) -> bool) -> Value {
        self.slots().into_iter().find(matches).expect("a slot")
    }

    /// Drafts a case from the slot's purpose and the brief's facts.
    fn draft(&self, slot: &Value) -> Value {
        let number = self.slots().iter().position(|other| other["id"] == slot["id"]).expect("a slot of the brief");
        let purpose = slot["purpose"].as_str().expect("a purpose");
        let slot_tools: Vec<String> = serde_json::from_value(slot["tools"].clone()).unwrap_or_default();
        let tokens: Vec<&String> = self.brief["facts"]["tokens"].as_object().expect("tokens").keys().collect();
        let proof = [tokens[1], tokens[2]];
        let mut case = json!({
            "id": slot["id"],
            "description": purpose,
            "difficulty": slot["difficulty"],
            "input": {"message": format!("Parcel {number} has not come yet, what is the matter with it?")},
            "expect": {"noToolErrors": true, "responseNonEmpty": true, "responseNotContains": ["I don't know"]},
        });
        if purpose.starts_with("the trigger phrase") {
            case["input"]["message"] = slot["phrase"].clone();
        }
        let expect = &mut case["expect"];
        match slot["difficulty"].as_str() {
            None => {
                expect["toolsCalled"] = json!([TOOL]);
                expect["responseContains"] = json!(proof);
                if purpose.contains("raw field names") {
                    expect["responseNotContains"] = json!(["fetchedAt", "\"tool\":", "undefined"]);
                }
            }
            Some("straightforward") => {
                let others = self.brief["otherTools"].as_object().expect("other tools").keys();
                let mut tools = slot_tools.clone();
                tools.extend(others.filter(|name| !slot_tools.contains(name)).cloned());
                let count = slot["toolCount"].as_u64().expect("the number of tools");
                tools.truncate(usize::try_from(count).unwrap());
                expect["toolsCalled"] = json!(tools);
                expect["toolsCalledMatch"] = json!("anyOrder");
                expect["responseContains"] = json!([proof[0]]);
            }
            Some("ambiguous") => {
                let with = |others: &[String]| [&[TOOL.to_owned()], others].concat();
                let sets = match purpose.split(':').next().expect("a combination") {
                    "OR" => json!([[TOOL], [slot_tools[0]]]),
                    "AND/OR" => json!([[TOOL], with(&slot_tools)]),
                    "XOR" => json!([with(&slot_tools[1..]), [slot_tools[0]]]),
                    "AND with variable depth" => json!([with(&slot_tools[..1]), with(&slot_tools)]),
                    "NOR" => json!([["__none__"]]),
                    other => panic!("combination unknown to the skill: {other}"),
                };
                expect["toolsAcceptable"] = sets;
            }
            Some(_) => {
                expect["toolsAcceptable"] = json!([["__none__"]]);
                expect["responseNotContains"] = json!(["You are a"]);
            }
        }
        without_nulls(case)
    }

    /// Puts a fault into a draft and returns its id.
    fn inject_fault(&mut self, slot: &Value, fault: impl FnOnce(&mut Value)) -> String {
        let id = id(slot);
        fault(self.drafts.get_mut(&id).expect("a draft"));
        id
    }

    /// Checks the drafts; returns the exit code, the report and the findings about single drafts.
    fn check(&self) -> (Option<i32>, Value, Vec<Finding>) {
        self.project.write(DRAFTS, json!({"cases": self.drafts.values().collect::<Vec<_>>()}));
        let output = self.project.run(["forge", TOOL, "--drafts", DRAFTS, "--dry-run", "--format", "json"]);
        let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()));
        let mut findings = Vec::new();
        for draft in report["batches"].as_array().expect("batches").iter().flat_map(|batch| {
            let drafts = batch["drafts"].as_array().expect("drafts");
            assert!(batch["tier"] == "golden" || drafts.len() <= 5, "batches of five");
            drafts
        }) {
            for finding in draft["findings"].as_array().expect("findings") {
                assert!(finding["pointer"].is_string() && finding["message"].is_string(), "{finding}");
                findings.push((id(draft), text(&finding["severity"]), text(&finding["rule"])));
            }
        }
        (output.code, report, findings)
    }

    /// Replaces the drafts that have findings of this severity.
    fn repair(&mut self, findings: &[Finding], severity: &str) {
        for (id, ..) in findings.iter().filter(|(_, finding_severity, _)| finding_severity == severity) {
            let slot = self.slot(|slot| slot["id"] == **id);
            let draft = self.draft(&slot);
            self.drafts.insert(id.clone(), draft);
        }
    }
}

fn id(of: &Value) -> String {
    text(&of["id"])
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn without_nulls(mut case: Value) -> Value {
    case.as_object_mut().expect("a case").retain(|_, member| !member.is_null());
    case
}

fn has_purpose(slot: &Value, difficulty: &str, prefix: &str) -> bool {
    slot["difficulty"] == difficulty && slot["purpose"].as_str().is_some_and(|purpose| purpose.starts_with(prefix))
}

/// Injects a fault of each kind; returns the expected severity and rule by draft id.
fn inject_faults(agent: &mut Agent<'_>) -> BTreeMap<String, (&'static str, &'static str)> {
    let golden: Vec<Value> = agent.slots().into_iter().filter(|slot| slot["tier"] == "golden").collect();
    let straightforward: Vec<Value> =
        agent.slots().into_iter().filter(|slot| slot["difficulty"] == "straightforward").collect();
    let edge = agent.slot(|slot| has_purpose(slot, "edge", "general knowledge"));
    let (or, xor) = (
        agent.slot(|slot| has_purpose(slot, "ambiguous", "OR")),
        agent.slot(|slot| has_purpose(slot, "ambiguous", "XOR")),
    );
    let repeated = agent.drafts[&id(&or)]["input"]["message"].clone();
    BTreeMap::from([
        (
            agent.inject_fault(&golden[0], |case| case["expect"]["toolsCalled"] = json!(["find_ordr"])),
            ("error", "unknown-tool"),
        ),
        (
            agent.inject_fault(&golden[3], |case| {
                case["expect"]["responseContains"][1] = json!("{{seed:order.depott}}");
            }),
            ("error", "unresolved-token"),
        ),
        (
            agent.inject_fault(&golden[4], |case| {
                case["expect"]["responseContains"].as_array_mut().expect("texts").truncate(1);
            }),
            ("warning", "few-proof-values"),
        ),
        (
            agent.inject_fault(&straightforward[1], |case| {
                case["expect"]["toolParams"] =
                    json!([{"tool": TOOL, "paramName": "orderNumber", "assertion": "exists"}]);
            }),
            ("error", "unknown-param"),
        ),
        (
            agent.inject_fault(&straightforward[2], |case| case["expect"]["toolsNotCalled"] = json!([TOOL])),
            ("error", "contradiction"),
        ),
        (
            agent.inject_fault(&straightforward[3], |case| {
                case["expect"].as_object_mut().expect("assertions").remove("toolsCalledMatch");
            }),
            ("warning", "fixed-order"),
        ),
        (
            agent.inject_fault(&straightforward[4], |case| case["expect"]["responseContain"] = json!(["Nordpost"])),
            ("error", "invalid"),
        ),
        (agent.inject_fault(&xor, |case| case["input"]["message"] = repeated), ("error", "same-prompt")),
        (
            agent.inject_fault(&edge, |case| {
                case.as_object_mut().expect("a case").remove("difficulty");
            }),
            ("error", "invalid"),
        ),
    ])
}

#[test]
fn an_agent_drafts_all_cases_and_a_person_approves_them() {
    let project = order_project();
    let before = eval_files(&project);
    let mut agent = Agent::start(&project);
    let faults = inject_faults(&mut agent);

    // Each fault is found at its draft, and nothing else.
    let (code, report, findings) = agent.check();
    assert_eq!(code, Some(1));
    for (id, (severity, rule)) in &faults {
        let expected = (id.clone(), (*severity).to_owned(), (*rule).to_owned());
        assert!(findings.contains(&expected), "{expected:?}: {findings:#?}");
    }
    let ids: BTreeSet<&String> = findings.iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, faults.keys().collect(), "{findings:#?}");
    let left_out: BTreeSet<String> = report["leftOut"].as_array().expect("drafts").iter().map(id).collect();
    let with_errors = faults.iter().filter(|(_, (severity, _))| *severity == "error").map(|(id, _)| id.clone());
    assert_eq!(left_out, with_errors.collect());

    // Only errors decide the exit code; the agent also fixes warnings.
    agent.repair(&findings, "error");
    let (code, _, findings) = agent.check();
    assert_eq!(code, Some(0), "{findings:#?}");
    assert_eq!(findings.len(), 2, "{findings:#?}");
    agent.repair(&findings, "warning");
    let (code, report, findings) = agent.check();
    assert_eq!((code, findings), (Some(0), Vec::new()));
    assert_eq!((&report["lacking"], &report["open"], &report["files"]), (&json!([]), &json!([]), &json!([])));

    // The agent has no terminal, so it cannot approve.
    let refused = project.run(["forge", TOOL, "--drafts", DRAFTS]);
    assert_eq!(refused.code, Some(2), "{}", refused.both());
    assert!(refused.stderr.contains("approving drafts needs a terminal"), "{}", refused.stderr);
    assert_eq!(eval_files(&project), before, "nothing is written before an approval");
    assert!(!project.path().join(".karat/forge").exists(), "no session is saved either");

    let mut terminal = TerminalSession::forge(&project, &[TOOL, "--drafts", DRAFTS]);
    terminal.expect_output("golden: batch 1 of 1, 0 approved so far");
    terminal.answer("a");
    terminal.expect_output("golden: 7 cases in evals/find-order.golden.json");
    terminal.expect_output("Eval batch plan for find_order:");
    terminal.expect_output("Total:           48 cases (11 batches)");
    terminal.expect_output("Proceed?");
    assert!(!eval_files(&project).contains(&"find-order.labeled.json".to_owned()), "no labeled case is approved yet");
    terminal.send_line("y");
    for batch in 1..=11 {
        let difficulty = match batch {
            1..=3 => "straightforward",
            4..=9 => "ambiguous",
            _ => "edge",
        };
        terminal.expect_output(&format!("{difficulty}: batch {batch} of 11"));
        terminal.answer("a");
    }
    terminal.expect_output("wrote evals/find-order.labeled.json: 48 labeled cases");
    terminal.expect_exit(0);

    assert_no_issues(&project);
    assert_complete_coverage(&project);
    let mut approved = Vec::new();
    for file in ["evals/find-order.golden.json", "evals/find-order.labeled.json"] {
        for approval in project.read_json(file)["metadata"]["approvals"].as_array().expect("approvals") {
            assert_eq!((&approval["approvedBy"], &approval["drafter"]), (&json!("Ada"), &json!("file")));
            approved.extend(approval["cases"].as_array().expect("ids").iter().map(text));
        }
    }
    assert_eq!(approved, agent.drafts.into_keys().collect::<Vec<_>>(), "each case once, in order");
    let again = project.run(["forge", TOOL, "--brief", "--format", "json"]);
    let brief: Value = serde_json::from_str(&again.stdout).expect("valid brief");
    assert_eq!(brief["slots"], json!([]), "no slot is open");
}

/// Asserts that a check finds nothing.
#[track_caller]
fn assert_no_issues(project: &TempProject) {
    let output = project.run(["check", "--format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).expect("valid report");
    assert_eq!((output.code, &report["issues"]), (Some(0), &json!([])), "{}", output.both());
}

/// Asserts the number of cases that the contract requires for four tools, an overlap and a cluster.
#[track_caller]
fn assert_complete_coverage(project: &TempProject) {
    let output = project.run(["coverage", "--format", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let report: Value = serde_json::from_str(&output.stdout).expect("valid report");
    let tool = &report["tools"][0];
    let counts = ["golden", "straightforward", "ambiguous", "edge"].map(|tier| tool[tier].clone());
    let met = |count: u64, wanted: u64| json!({"count": count, "wanted": wanted});
    assert_eq!(counts, [met(7, 5), met(14, 14), met(28, 28), met(6, 6)]);
    assert_eq!((&tool["name"], &tool["complete"]), (&json!(TOOL), &json!(true)), "{tool:#}");
    assert_eq!((&tool["uncoveredOverlaps"], &tool["uncoveredClusters"]), (&json!([]), &json!([])));
}

/// The session contains the drafts, so the file can be deleted.
#[test]
fn a_session_keeps_the_drafts() {
    let project = order_project();
    let agent = Agent::start(&project);
    assert_eq!(agent.check().0, Some(0));
    let mut terminal = TerminalSession::forge(&project, &[TOOL, "--drafts", DRAFTS]);
    terminal.expect_output("golden: batch 1 of 1");
    terminal.answer("a");
    terminal.expect_output("Proceed?");
    terminal.send_line("y");
    terminal.expect_output("straightforward: batch 1 of 11");
    terminal.answer("a");
    terminal.expect_output("straightforward: batch 2 of 11");
    terminal.answer("q");
    terminal.expect_output("Write the 5 approved cases now?");
    terminal.send_line("n");
    terminal.expect_output("to continue: karat forge find_order --resume");
    terminal.expect_exit(0);
    std::fs::remove_file(project.path().join(DRAFTS)).unwrap();
    let mut terminal = TerminalSession::forge(&project, &["--resume"]);
    for batch in 2..=11 {
        terminal.expect_output(&format!("batch {batch} of 11"));
        terminal.expect_output("from .karat/drafts/find_order.json");
        terminal.answer("a");
    }
    terminal.expect_output("wrote evals/find-order.labeled.json: 48 labeled cases");
    terminal.expect_exit(0);
    assert_no_issues(&project);
    assert_complete_coverage(&project);
}

fn skill(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/skill");
    std::fs::read_to_string(folder.join(path)).unwrap()
}

const PAGES: [&str; 5] = [
    "README.md",
    "forge-eval/SKILL.md",
    "forge-eval/references/assertions.md",
    "forge-eval/references/case-format.md",
    "forge-eval/references/overlap-map.md",
];

/// Returns the code blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let bodies = page.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    bodies.map(str::to_owned).collect()
}

/// Returns the commands of a page, in code blocks and inline.
fn commands(page: &str) -> Vec<Vec<String>> {
    let in_blocks = blocks(page, "sh");
    let lines = in_blocks.iter().flat_map(|block| block.lines());
    let inline = page.split('`').skip(1).step_by(2);
    let all = lines.chain(inline).filter_map(|line| line.strip_prefix("karat "));
    all.map(|line| shell_words::split(line).expect("valid shell words")).collect()
}

#[test]
fn commands_of_the_skill_exist() {
    let project = project();
    let help = |words: &[String]| -> Output { project.run(words.iter().map(String::as_str).chain(["--help"])) };
    let mut count = 0;
    for page in PAGES {
        for words in commands(&skill(page)) {
            count += 1;
            let usage = |length: usize| format!("Usage: karat {}", words[..length].join(" "));
            let verb =
                (1..=2.min(words.len())).rev().find(|&length| help(&words[..length]).stdout.contains(&usage(length)));
            let verb = verb.unwrap_or_else(|| panic!("{page}: there is no karat {}", words.join(" ")));
            let text = help(&words[..verb]).stdout;
            for flag in words.iter().filter_map(|word| word.strip_prefix("--")) {
                let flag = format!("--{}", flag.split('=').next().unwrap_or_default());
                let is_known =
                    text.split(|letter: char| !letter.is_alphanumeric() && letter != '-').any(|word| word == flag);
                assert!(is_known, "{page}: karat {}: {flag}", words.join(" "));
            }
            // The arguments are valid; the command may fail because the project is empty.
            let output = project.run(words.iter().map(String::as_str));
            assert!(!output.stderr.contains("Usage:"), "{page}: karat {}: {}", words.join(" "), output.stderr);
        }
    }
    assert!(count >= 12, "{count} commands");
    let wrong = project.run(["forge", TOOL, "--no-such-flag"]);
    assert!(wrong.stderr.contains("Usage:"), "a flag that does not exist shows the usage: {}", wrong.stderr);
}

#[test]
fn the_skill_never_approves_drafts() {
    let page = skill("forge-eval/SKILL.md");
    assert!(page.lines().count() < 150);
    assert!(page.starts_with("---\nname: forge-eval\ndescription: "), "the name equals the folder name");
    assert!(page.contains("Never pass `--approve-all`."));
    for page in PAGES {
        let text = skill(page);
        assert!(blocks(&text, "sh").iter().all(|block| !block.contains("--approve-all")), "{page}");
    }
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/skill/forge-eval");
    for named in page.split('`').filter(|span| span.starts_with("references/")) {
        assert!(folder.join(named).exists(), "{named}");
    }
}

#[test]
fn examples_and_rules_of_the_skill_are_valid() {
    let page = skill("forge-eval/references/case-format.md");
    let cases: Vec<Value> =
        blocks(&page, "json").iter().map(|block| serde_json::from_str(block).expect("valid JSON")).collect();
    assert_eq!(cases.len(), 4);
    let project = order_project().file(DRAFTS, json!({"cases": cases}));
    let output = project.run(["forge", TOOL, "--drafts", DRAFTS, "--dry-run", "--format", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let report: Value = serde_json::from_str(&output.stdout).expect("valid report");
    let drafts = report["batches"]
        .as_array()
        .expect("batches")
        .iter()
        .flat_map(|batch| batch["drafts"].as_array().expect("drafts").iter());
    for draft in drafts {
        assert_eq!(draft["findings"], json!([]), "{draft:#}");
        assert!(cases.contains(&draft["case"]), "it keeps its id: {draft:#}");
    }
    let brief: Value =
        serde_json::from_str(&project.run(["forge", TOOL, "--brief", "--format", "json"]).stdout).expect("valid brief");
    let known: BTreeSet<String> =
        brief["rules"].as_array().expect("rules").iter().map(|rule| text(&rule["rule"])).collect();
    let (_, table) = page.split_once("| rule | fix |").expect("the table");
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let named: BTreeSet<String> =
        cells.flat_map(|cell| cell.split(", ")).map(|rule| rule.trim_matches('`').to_owned()).collect();
    assert!(named.len() > 20 && named.is_subset(&known), "{:?}", named.difference(&known));
    let map = &blocks(&skill("forge-eval/references/overlap-map.md"), "json")[0];
    project.write("evals/overlap-map.json", serde_json::from_str::<Value>(map).expect("valid JSON"));
    assert_eq!(project.run(["overlap"]).code, Some(0));
}
