//! The yardstick of the runner's benchmark: sends an eval file's messages and reads the answers, nothing more.

#![expect(clippy::print_stdout, reason = "the number of answers is what this tool is asked for")]

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

/// Send the messages of an eval file's cases and count the answers.
#[derive(Debug, Parser)]
#[command(name = "karat-bare-client")]
struct Arguments {
    /// The eval file
    file: PathBuf,
    /// Where the agent is asked
    #[arg(long)]
    url: Url,
    /// How many requests may be under way at once
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let bodies = bodies(&serde_json::from_slice(&std::fs::read(&arguments.file)?)?)?;
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "there is a TLS provider already")?;
    // No certificates: nothing here is encrypted, and reading the machine's takes longer than many requests.
    let client = Client::builder().tls_certs_only([]).build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answered = runtime.block_on(send_all(client, arguments.url, bodies, arguments.concurrency))?;
    println!("{answered}");
    Ok(())
}

fn bodies(file: &Value) -> Result<Vec<Vec<u8>>, Failure> {
    let cases = file.get("cases").unwrap_or(file).as_array().ok_or("the file holds no cases")?;
    let body = |case: &Value| {
        let message = case["input"]["message"].as_str().ok_or("a case has no message")?;
        Ok(json!({"message": message}).to_string().into_bytes())
    };
    cases.iter().map(body).collect()
}

/// Lets as many workers as may send at once take one body after another.
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
