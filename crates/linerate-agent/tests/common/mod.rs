//! An agent on a port of loopback, which ends when it is dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use linerate_agent::api::LimitsInfo;
use linerate_agent::serve::Server;
use linerate_agent::{AgentConfig, Core};

/// An agent that goes on until it is dropped.
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves what `set_up` makes of a listener, without limits.
    pub fn start(set_up: impl FnOnce(Server) -> Server) -> Self {
        Self::within(LimitsInfo::default(), set_up)
    }

    /// Serves what `set_up` makes of a listener, with limits.
    pub fn within(limits: LimitsInfo, set_up: impl FnOnce(Server) -> Server) -> Self {
        let core = Arc::new(Core::new(AgentConfig {
            host_name: "test".to_owned(),
            limits,
            lab: false,
        }));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = set_up(Server::bind(any, core).expect("loopback has free ports"));
        let address = server.address().expect("it is bound");
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || server.run(stopped).expect("it can serve"));
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
