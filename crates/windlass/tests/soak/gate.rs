//! A door between clients and a server that may move: one address, and connections that break.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

/// A door. Clones are the same door.
#[derive(Clone)]
pub(crate) struct Gate {
    /// Where clients knock.
    pub address: SocketAddr,
    behind: Arc<Mutex<Option<SocketAddr>>>,
    cut: broadcast::Sender<()>,
}

impl Gate {
    /// Opens a door to a server.
    pub(crate) async fn open(url: &str) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gate = Gate {
            address: listener.local_addr().unwrap(),
            behind: Arc::default(),
            cut: broadcast::Sender::new(1),
        };
        gate.lead_to(url);
        let door = gate.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(door.clone().pass(client));
            }
        });
        gate
    }

    /// Leads to another server from now on.
    pub(crate) fn lead_to(&self, url: &str) {
        let address = url.trim_start_matches("https://").parse().unwrap();
        *self.behind.lock().unwrap() = Some(address);
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        // Nobody listens when nobody is connected.
        let _ = self.cut.send(());
    }

    async fn pass(self, mut client: TcpStream) {
        let mut cut = self.cut.subscribe();
        let behind = *self.behind.lock().unwrap();
        let Some(Ok(mut server)) = (match behind {
            Some(address) => Some(TcpStream::connect(address).await),
            None => None,
        }) else {
            return;
        };
        tokio::select! {
            _ = cut.recv() => {}
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        }
    }
}
