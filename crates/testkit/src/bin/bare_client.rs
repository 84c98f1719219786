//! The baseline of the runner benchmark: sends the messages of an eval file and reads the replies, nothing else.

#![expect(clippy::print_stdout, reason = "prints the number of replies")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// Send the messages of an eval file and count the replies.
#[derive(Debug, Parser)]
#[command(name = "karat-bare-client")]
struct Arguments {
    /// Eval file
    file: PathBuf,
    /// URL of the agent
    #[arg(long)]
    url: Url,
    /// Number of requests to send in parallel
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let bodies = bodies(&serde_json::from_slice(&std::fs::read(&arguments.file)?)?)?;
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "a TLS provider is already installed")?;
    // No certificates: nothing is encrypted, and loading the system's would take longer than many requests.
    let client = Client::builder().tls_certs_only([]).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answered = runtime.block_on(send_all(client, arguments.url, bodies, arguments.concurrency))?;
    println!("{answered}");
    Ok(())
}

fn bodies(file: &Value) -> Result<Vec<Vec<u8>>, Failure> {
    let cases = file.get("cases").unwrap_or(file).as_array().ok_or("the file has no cases")?;
    let body = |case: &Value| {
        let message = case["input"]["message"].as_str().ok_or("a case has no message")?;
        Ok(json!({"message": message}).to_string().into_bytes())
    };
    cases.iter().map(body).collect()
}

/// Sends the bodies with this number of parallel workers.
async fn send_all(client: Client, url: Url, bodies: Vec<Vec<u8>>, workers: usize) -> Result<usize, Failure> {
    let bodies = Arc::new(bodies);
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks: JoinSet<Result<usize, Failure>> = JoinSet::new();
    for _ in 0..workers {
        let (client, url, bodies, next) = (client.clone(), url.clone(), Arc::clone(&bodies), Arc::clone(&next));
        tasks.spawn(async move {
            let mut answered = 0;
            while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
                let request = client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body.clone());
                request.send().await?.error_for_status()?.bytes().await?;
                answered += 1;
            }
            Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(worker) = tasks.join_next().await {
        answered += worker??;
    }
    Ok(answered)
}
