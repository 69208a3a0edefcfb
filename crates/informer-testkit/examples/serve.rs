//! Serves an empty cluster until it is interrupted, and prints its URL:
//! `kubectl --server=URL get pods -A`.

use informer_testkit::TestServer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestServer::start().await?;
    println!("{}", server.url());
    std::future::pending::<()>().await;
    Ok(())
}
