use std::time::Duration;

use karat_testkit::project::{Filters, TempProject, TimedOut};
use serde_json::json;

fn shell() -> TempProject {
    TempProject::new("/bin/sh")
}

#[test]
fn files_are_removed_with_the_project() {
    let project = shell().file("a/b.txt", "text").file("c.json", json!({"k": [1]})).file("d", vec![0xff]);
    let path = project.path();
    assert_eq!(project.read("a/b.txt"), "text");
    assert_eq!(project.read("c.json"), "{\n \"k\": [\n  1\n ]\n}");
    assert_eq!(project.read_json("c.json"), json!({"k": [1]}));
    assert_eq!(project.run(["-c", "ls; cat a/b.txt"]).stdout, "a\nc.json\nd\ntext");
    drop(project);
    assert!(!path.exists());
}

#[test]
fn the_environment_is_clean() {
    let project = shell().env("KARAT_TIMEOUT_MS", "5");
    let output = project.command(["-c", "env | sort; echo err >&2; exit 7"]).env("EXTRA", "1").run();
    let names: Vec<&str> = output.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    for name in ["KARAT_TIMEOUT_MS", "EXTRA", "HOME", "NO_COLOR", "PATH"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    for name in &names {
        assert!(
            !["CI", "USER", "RUST_LOG", "HTTP_PROXY"].contains(name) && !name.starts_with("CARGO"),
            "{name} was inherited"
        );
    }
    assert!(output.stdout.contains(&format!("HOME={}", project.home().display())));
    assert_eq!((output.code, output.stderr.as_str()), (Some(7), "err\n"));
    assert!(shell().in_ci().run(["-c", "echo $CI"]).stdout.contains("true"));
}

#[test]
fn filters_values_that_differ_between_runs() {
    let project = shell();
    let script = "echo $PWD/evals; echo ran in 12ms and 1.5s at http://127.0.0.1:4711/chat; \
                  printf 'run 0190d3b2-7b1c-7abc-8def-0123456789ab\\nno end' >&2; exit 3";
    let expected = "exit: 3\n----- stdout -----\n[DIR]/evals\nran in [TIME] and [TIME] at http://127.0.0.1:[PORT]/chat\n\
                    ----- stderr -----\nrun [RUN_ID]\nno end⏎\n";
    assert_eq!(project.run(["-c", script]).filtered(), expected);
    assert_eq!(Filters::general().apply("3 cases in 5s, v1.2.3s2"), "3 cases in [TIME], v1.2.3s2");
}

#[test]
fn passes_standard_input_and_kills_on_timeout() {
    assert_eq!(shell().command(["-c", "cat"]).stdin("given").run().stdout, "given");
    assert_eq!(shell().run(["-c", "cat"]).stdout, "", "standard input is not inherited");
    let result = shell().command(["-c", "echo started; sleep 60"]).timeout(Duration::from_millis(200)).start().wait();
    let Err(TimedOut(output)) = result else { panic!("expected a timeout") };
    assert_eq!((output.code, output.stdout.as_str()), (None, "started\n"));
}

#[test]
fn interrupts_a_command() {
    let project = shell();
    // A shell trap would have no effect if SIGINT is ignored in the test process.
    let python = "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(130)); \
                  print('ready', flush=True); time.sleep(60)";
    let running = project.command(["-c", "exec python3 -c \"$0\"", python]).start();
    while !running.stdout_so_far().contains("ready") {
        std::thread::sleep(Duration::from_millis(2));
    }
    running.interrupt();
    assert_eq!(running.wait().unwrap().code, Some(130));
}
