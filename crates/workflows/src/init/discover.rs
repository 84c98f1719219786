//! Looks for an agent and its tools: programs on usual ports, tool files and MCP configurations.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_registry::{find_tool_files, read_files, read_path};
use serde::{Deserialize, Serialize};

use super::mcp_file;
use crate::agent::detect::{Detection, by_discovery};

/// Ports on which agents usually listen during development: those of web frameworks and of products with a preset.
pub const USUAL_PORTS: [u16; 8] = [3000, 8000, 8080, 5000, 2024, 4111, 5005, 5678];

/// A program on this machine accepts connections immediately.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum depth of folders to search; tools are rarely nested deeper.
const MAX_FOLDER_DEPTH: usize = 5;
/// Maximum number of files to read.
const MAX_FILES: usize = 500;
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Maximum number of single source files to propose.
const MAX_FILE_PROPOSALS: usize = 5;

/// The tool registry that karat reads if none is configured.
const DEFAULT_REGISTRY: &str = "tools/tools.exports.ts";

/// JSON files to skip, since they are never lists of tools.
const OTHER_JSON_FILES: [&str; 6] =
    ["karat.json", "tools.lock.json", "package.json", "package-lock.json", "tsconfig.json", "composer.json"];

/// Checks whether programs listen on ports of this machine.
pub trait PortProbe {
    fn is_open(&self, port: u16) -> bool;
}

/// Connects to the loopback addresses, never to other machines.
#[derive(Debug, Clone, Copy)]
pub struct LoopbackProbe;

impl PortProbe for LoopbackProbe {
    fn is_open(&self, port: u16) -> bool {
        let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        addresses
            .into_iter()
            .any(|address| TcpStream::connect_timeout(&SocketAddr::new(address, port), CONNECT_TIMEOUT).is_ok())
    }
}

/// The agents and tool registries that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// The agent that the environment or `.env` names.
    pub agent: Option<String>,
    /// Ports on which a program listens.
    pub ports: Vec<u16>,
    /// The programs on these ports that were recognised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<FoundAgent>,
    /// Possible tool registries, best first.
    pub registries: Vec<RegistryCandidate>,
    /// Files and servers that could not be read or used, as lower-case fragments.
    pub problems: Vec<String>,
}

/// A running agent with a preset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundAgent {
    pub port: u16,
    pub kind: String,
    /// The value of `agentEndpoint`.
    pub endpoint: String,
}

/// A possible tool registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryCandidate {
    /// A file or folder, relative to the project.
    pub path: String,
    pub content: RegistryContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RegistryContent {
    /// This number of tools.
    Tools(usize),
    /// This number of MCP servers.
    McpServers(usize),
}

impl Discovery {
    /// Records the ports on which a program listens.
    pub(super) fn find_ports(&mut self, ports: &[u16], probe: &dyn PortProbe) {
        self.ports = ports.iter().copied().filter(|port| probe.is_open(*port)).collect();
    }

    /// Recognises the programs on the ports by the discovery endpoints of products.
    pub(super) async fn recognise_agents(&mut self) {
        for port in self.ports.clone() {
            // An error only means that no product was recognised.
            let Ok(Detection { kind: Some(kind), agent_endpoint: Some(endpoint), .. }) =
                by_discovery(&format!("http://localhost:{port}")).await
            else {
                continue;
            };
            self.agents.push(FoundAgent { port, kind, endpoint });
        }
    }

    /// Looks for tools in a folder. Files with tools come before MCP configurations, which may be those of a developer.
    pub(super) fn find_registries(&mut self, folder: &Path) {
        if !folder.is_dir() {
            return;
        }
        let mut lists = Vec::new();
        let mut sources = Vec::new();
        for file in self.candidates(folder) {
            if is_json(&file) {
                lists.extend(self.read_list(&file, folder));
            } else if mentions_tools(&file) {
                sources.push(file);
            }
        }
        self.registries = lists;
        self.registries.extend(source_registries(&sources, folder));
        // The default file may import tools that other files define.
        if let Some(default) = read_registry(&folder.join(DEFAULT_REGISTRY), folder) {
            self.registries.retain(|candidate| candidate.path != default.path);
            self.registries.insert(0, default);
        }
        self.find_mcp_files(folder);
    }

    /// Returns the files to read, most promising first.
    fn candidates(&mut self, folder: &Path) -> Vec<PathBuf> {
        let mut files = find_tool_files(folder, MAX_FOLDER_DEPTH).unwrap_or_else(|error| {
            self.problems.push(format!("cannot look for tools in {}: {error}", folder.display()));
            Vec::new()
        });
        let evals = folder.join("evals");
        files.retain(|file| !file.starts_with(&evals) && !OTHER_JSON_FILES.contains(&file_name(file).as_str()));
        files.sort_by_cached_key(|file| (!file_name(file).contains("tool"), file.components().count(), file.clone()));
        if files.len() > MAX_FILES {
            self.problems.push(format!("looked for tools in only {MAX_FILES} of {} files", files.len()));
            files.truncate(MAX_FILES);
        }
        files.retain(|file| std::fs::metadata(file).is_ok_and(|metadata| metadata.len() <= MAX_FILE_BYTES));
        files
    }

    fn read_list(&mut self, file: &Path, folder: &Path) -> Option<RegistryCandidate> {
        let is_named_tools = file_name(file).contains("tool");
        match read_path(file, folder) {
            // Other lists of objects have names, too.
            Ok(registry) => {
                let has_tools = registry.tools().iter().any(|tool| is_named_tools || tool.input_schema.get().is_some());
                has_tools.then(|| tool_candidate(file, folder, registry.tools().len()))
            }
            Err(error) if is_named_tools => {
                self.problems.push(format!("cannot read tools from {}: {error}", relative(file, folder)));
                None
            }
            Err(_) => None,
        }
    }

    fn find_mcp_files(&mut self, folder: &Path) {
        for name in mcp_file::FILES {
            let path = folder.join(name);
            if !path.is_file() {
                continue;
            }
            match mcp_file::read(&path) {
                Ok(Some(file)) => {
                    let skipped =
                        file.skipped.iter().map(|server| format!("cannot use the MCP server '{server}' of {name}"));
                    self.problems.extend(skipped);
                    if !file.servers.is_empty() {
                        let content = RegistryContent::McpServers(file.servers.len());
                        self.registries.push(RegistryCandidate { path: name.to_owned(), content });
                    }
                }
                Ok(None) => {}
                Err(error) => self.problems.push(error.message),
            }
        }
    }
}

/// Proposes the common folder of all source files that define tools, followed by the files themselves.
fn source_registries(files: &[PathBuf], folder: &Path) -> Vec<RegistryCandidate> {
    let Ok(registry) = read_files(files, folder) else {
        return Vec::new();
    };
    let locations = registry.tools().iter().filter_map(|tool| tool.location.as_ref());
    let paths: BTreeSet<&Path> = locations.map(|location| Path::new(&location.source)).collect();
    let paths: Vec<&Path> = paths.into_iter().collect();
    let Some(common) = common_folder(&paths) else {
        return Vec::new();
    };
    let folder_path = (paths.len() > 1).then_some(common);
    let proposals = folder_path.into_iter().chain(paths.iter().copied().take(MAX_FILE_PROPOSALS));
    // Read separately: a file alone may define other tools than as part of the project.
    let mut candidates: Vec<RegistryCandidate> =
        proposals.filter_map(|path| read_registry(&folder.join(path), folder)).collect();
    if candidates.is_empty() {
        candidates.extend(read_registry(&folder.join(common), folder));
    }
    candidates
}

/// Returns a file or folder as a candidate, if karat can read tools from it.
fn read_registry(path: &Path, folder: &Path) -> Option<RegistryCandidate> {
    let count = read_path(path, folder).ok()?.tools().len();
    (count > 0).then(|| tool_candidate(path, folder, count))
}

fn common_folder<'f>(files: &[&'f Path]) -> Option<&'f Path> {
    files.first().copied()?.ancestors().skip(1).find(|folder| files.iter().all(|file| file.starts_with(folder)))
}

fn tool_candidate(path: &Path, folder: &Path, count: usize) -> RegistryCandidate {
    RegistryCandidate { path: relative(path, folder), content: RegistryContent::Tools(count) }
}

fn relative(path: &Path, folder: &Path) -> String {
    let relative = path.strip_prefix(folder).unwrap_or(path).display().to_string();
    if relative.is_empty() { ".".to_owned() } else { relative }
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Whether a source file may define tools; most files need not be parsed.
fn mentions_tools(file: &Path) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| text.to_lowercase().contains("tool"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OpenPorts(&'static [u16]);

    impl PortProbe for OpenPorts {
        fn is_open(&self, port: u16) -> bool {
            self.0.contains(&port)
        }
    }

    fn discover_in(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let mut discovered = Discovery::default();
        discovered.find_registries(folder.path());
        let paths =
            discovered.registries.into_iter().map(|registry| format!("{} {:?}", registry.path, registry.content));
        (paths.collect(), discovered.problems)
    }

    const PYTHON: &str =
        "from langchain_core.tools import tool\n\n@tool\ndef NAME(city: str) -> str:\n    \"\"\"Finds.\"\"\"\n";

    #[test]
    fn keeps_the_order_of_ports() {
        let mut discovered = Discovery::default();
        discovered.find_ports(&USUAL_PORTS, &OpenPorts(&[5000, 8000, 9999]));
        assert_eq!(discovered.ports, [8000, 5000]);
    }

    #[test]
    fn finds_tool_lists_sources_and_mcp_configurations() {
        let python = PYTHON.replace("NAME", "find_city");
        let (paths, problems) = discover_in(&[
            ("export/tools.json", r#"[{"name": "a"}, {"name": "b"}]"#),
            ("users.json", r#"[{"name": "Ada"}]"#),
            ("package.json", r#"{"name": "shop", "tools": []}"#),
            ("evals/tools.json", r#"[{"name": "case"}]"#),
            ("agent/main.py", &python),
            ("README.md", "tools"),
            (".mcp.json", r#"{"mcpServers": {"files": {"command": "npx", "args": ["server"]}}}"#),
        ]);
        assert_eq!(paths, ["export/tools.json Tools(2)", "agent/main.py Tools(1)", ".mcp.json McpServers(1)"]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn proposes_the_common_folder_of_several_sources() {
        let (first, second) = (PYTHON.replace("NAME", "find_city"), PYTHON.replace("NAME", "find_street"));
        let (paths, _) = discover_in(&[("src/tools/city.py", &first), ("src/tools/street.py", &second)]);
        assert_eq!(paths, ["src/tools Tools(2)", "src/tools/city.py Tools(1)", "src/tools/street.py Tools(1)"]);
    }

    #[test]
    fn reports_unreadable_files() {
        let (paths, problems) = discover_in(&[("tools.json", "[{"), (".vscode/mcp.json", "{ // comment\n}")]);
        assert!(paths.is_empty(), "{paths:?}");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
