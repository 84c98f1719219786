//! Tests of the real binary.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod agent;
mod agent_replies;
#[cfg(unix)]
mod agent_servers;
mod agreement;
mod agreement_tau_bench;
mod architecture;
mod check;
mod check_tools;
#[cfg(target_os = "linux")]
mod command;
mod conformance;
mod contradictions;
mod conversations;
mod coverage;
mod diff;
mod documented;
mod documented_wrappers;
mod dotenv;
mod eval_adopt;
mod eval_batch;
mod eval_check;
mod eval_doctor;
mod eval_new;
mod eval_run;
mod eval_stored;
#[cfg(unix)]
mod eval_stored_kill;
mod eval_test;
mod eval_traces;
mod evals_in_cases;
mod failures;
mod feedback;
mod feedback_import;
mod forge;
#[cfg(unix)]
mod forge_agent;
#[cfg(unix)]
mod forge_kill;
mod forge_model;
#[cfg(unix)]
mod forge_model_terminal;
mod forge_shop;
mod forge_terminal;
mod from_trace;
#[cfg(target_os = "linux")]
mod function_agents;
mod generated;
mod grammar;
mod hostile;
mod init;
mod interrupt;
#[cfg(unix)]
mod live;
mod logging;
mod matrix;
mod model;
mod newcomer;
mod overlap;
mod project_store;
mod recordings;
mod refine;
mod regress;
mod regress_guard;
#[cfg(target_os = "linux")]
mod review;
mod rubrics;
mod run;
mod run_store;
mod runs;
mod secrets;
mod security;
mod selection;
mod shards;
mod shop_example;
mod simulated_users;
#[cfg(unix)]
mod state;
mod store_project;
mod support;
mod tls;
#[cfg(unix)]
mod tool_registry;
mod tools;
mod trace_import;
#[cfg(unix)]
mod trace_kill;
mod trace_langfuse;
#[cfg(unix)]
mod trace_receive;
mod trace_show;
mod trials;
#[cfg(unix)]
mod watch;
