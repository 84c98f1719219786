//! Runs against agents of many products, as people have them.
//!
//! The agents are in `examples/agents`, and in `crates/agents/tests/servers` those that are fakes. They behave as
//! `karat_testkit::agent_server` says.

mod a2a;
mod adk;
mod ag_ui;
mod ai_sdk;
mod custom;
mod fakes;
mod functions;
mod langgraph;
mod langserve;
mod mastra;
mod shop;
