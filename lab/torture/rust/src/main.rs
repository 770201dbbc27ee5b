//! An elector of the crate kube-leader-election, as its documentation shows it.
//!
//! Arguments: KUBECONFIG NAMESPACE LEASE IDENTITY DURATION DEADLINE RETRY (seconds; the crate has no deadline)

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use tokio::signal::unix::{signal, SignalKind};

fn say(event: &str, namespace: &str, identity: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    println!("{{\"at\":{now},\"namespace\":\"{namespace}\",\"identity\":\"{identity}\",\"event\":\"{event}\"}}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, namespace, lease, identity, duration, _, retry] = &arguments[..] else {
        panic!("KUBECONFIG NAMESPACE LEASE IDENTITY DURATION DEADLINE RETRY");
    };
    let kubeconfig = Kubeconfig::read_from(file).expect("a kubeconfig");
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a configuration");
    config.read_timeout = Some(Duration::from_secs(5));
    let client = kube::Client::try_from(config).expect("a client");
    let lock = LeaseLock::new(
        client,
        namespace,
        LeaseLockParams {
            holder_id: identity.clone(),
            lease_name: lease.clone(),
            lease_ttl: Duration::from_secs(duration.parse().expect("seconds")),
        },
    );
    let retry = Duration::from_secs(retry.parse().expect("seconds"));
    let mut ended = signal(SignalKind::terminate()).expect("a signal");
    let mut leads = false;
    loop {
        let result = tokio::select! {
            result = lock.try_acquire_or_renew() => result,
            _ = ended.recv() => break,
        };
        let now = match result {
            Ok(result) => matches!(result, LeaseLockResult::Acquired(_)),
            Err(_) => leads,
        };
        if now != leads {
            say(if now { "started" } else { "stopped" }, namespace, identity);
        }
        leads = now;
        tokio::select! {
            _ = tokio::time::sleep(retry) => {}
            _ = ended.recv() => break,
        }
    }
    if leads {
        say("stopped", namespace, identity);
        let _ = lock.step_down().await;
    }
}
