//! Connections that move: where their requests are served, and that nothing is lost on the way.

use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::*;

/// Longer than anything here takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(20);

/// A runtime with one worker, whose thread has this name.
fn runtime(name: &str) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).thread_name(name).enable_all();
    builder.build().unwrap()
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Drives a connection that runs these errands, and tells on which thread each of them was.
fn threads_of(lanes: &[&Runtime], errands: Vec<Errand>) -> Vec<String> {
    let shared = runtime("shared");
    let lanes = Lanes::new(lanes.iter().map(|lane| lane.handle().clone()).collect());
    let place = lanes.place();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, own) = (Arc::clone(&seen), place.clone());
    let connection = Box::pin(async move {
        for errand in errands {
            if let Some(place) = &own {
                place.suit(errand).await;
            }
            noted.lock().unwrap().push(thread_name());
        }
    });
    let driven = async move { timeout(LONG, lanes.drive(connection, place)).await };
    shared
        .block_on(shared.spawn(driven))
        .unwrap()
        .expect("it ends");
    seen.lock().unwrap().clone()
}

#[test]
fn writes_are_on_a_lane_and_long_requests_are_not() {
    let lane = runtime("lane");
    let errands = vec![
        Errand::Read,
        Errand::Write,
        Errand::Write,
        Errand::Read,
        Errand::Long,
        Errand::Read,
        Errand::Write,
    ];
    let threads = threads_of(&[&lane], errands);
    assert_eq!(
        threads,
        ["shared", "lane", "lane", "lane", "shared", "shared", "lane"]
    );
}

#[test]
fn who_only_reads_any_more_leaves_the_lane() {
    let lane = runtime("lane");
    let most = READS_MAX as usize;
    let mut errands = vec![Errand::Write];
    errands.extend(vec![Errand::Read; most]);
    errands.push(Errand::Write);
    let threads = threads_of(&[&lane], errands);
    assert_eq!(threads[..most], vec!["lane"; most]);
    assert_eq!(threads[most..], ["shared", "lane"]);
}

#[test]
fn without_lanes_everything_stays() {
    let threads = threads_of(&[], vec![Errand::Write, Errand::Long, Errand::Write]);
    assert_eq!(threads, ["shared"; 3]);
}

#[test]
fn each_connection_takes_the_lane_with_the_fewest() {
    let (shared, one, other) = (runtime("shared"), runtime("one"), runtime("other"));
    let handles = [&one, &other].map(|lane| lane.handle().clone()).to_vec();
    let lanes = Arc::new(Lanes::new(handles));
    let mut threads: Vec<String> = shared.block_on(async {
        let mut connections = tokio::task::JoinSet::new();
        let together = Arc::new(tokio::sync::Barrier::new(4));
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..4 {
            let (lanes, together, tell) = (Arc::clone(&lanes), Arc::clone(&together), tell.clone());
            connections.spawn(async move {
                let place = lanes.place();
                let own = place.clone().unwrap();
                let connection = Box::pin(async move {
                    own.suit(Errand::Write).await;
                    together.wait().await;
                    tell.send(thread_name()).unwrap();
                });
                lanes.drive(connection, place).await;
            });
        }
        drop(tell);
        timeout(LONG, connections.join_all()).await.unwrap();
        let mut threads = Vec::new();
        while let Some(thread) = told.recv().await {
            threads.push(thread);
        }
        threads
    });
    threads.sort();
    assert_eq!(threads, ["one", "one", "other", "other"]);
}

#[test]
fn a_socket_that_moves_loses_no_byte() {
    let (shared, lane) = (runtime("shared"), runtime("lane"));
    let lanes = Lanes::new(vec![lane.handle().clone()]);
    let talk = async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = tokio::spawn(async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            for byte in 0..200_u8 {
                client.write_all(&[byte, byte]).await.unwrap();
                let mut answer = [0; 2];
                client.read_exact(&mut answer).await.unwrap();
                assert_eq!(answer, [byte, byte]);
            }
        });
        let (stream, _) = listener.accept().await.unwrap();
        let place = lanes.place();
        let own = place.clone().unwrap();
        let mut socket = Socket::new(stream, place.clone());
        let connection = Box::pin(async move {
            for round in 0.. {
                // It moves before it reads, in the middle of a message, and before it writes.
                let mut message = [0; 2];
                for (step, byte) in message.chunks_mut(1).enumerate() {
                    let errand = [Errand::Write, Errand::Long][(round + step) % 2];
                    own.suit(errand).await;
                    if socket.read_exact(byte).await.is_err() {
                        return;
                    }
                }
                own.suit([Errand::Write, Errand::Long][round % 2]).await;
                socket.write_all(&message).await.unwrap();
            }
        });
        lanes.drive(connection, place).await;
        client.await.unwrap();
    };
    let talk = async move { timeout(LONG, talk).await };
    let ended = shared.block_on(shared.spawn(talk)).unwrap();
    ended.expect("every byte arrives");
}

#[test]
fn a_connection_that_nobody_waits_for_ends_on_its_lane() {
    struct Tells(Option<tokio::sync::oneshot::Sender<()>>);
    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (shared, lane) = (runtime("shared"), runtime("lane"));
    let lanes = Lanes::new(vec![lane.handle().clone()]);
    shared.block_on(async move {
        let (tell, ended) = tokio::sync::oneshot::channel();
        let (arrive, arrived) = tokio::sync::oneshot::channel();
        let tells = Tells(Some(tell));
        let place = lanes.place();
        let own = place.clone().unwrap();
        let connection = Box::pin(async move {
            let _tells = tells;
            own.suit(Errand::Write).await;
            arrive.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        let driving = tokio::spawn(async move { lanes.drive(connection, place).await });
        timeout(LONG, arrived).await.unwrap().unwrap();
        driving.abort();
        timeout(LONG, ended).await.expect("it is dropped").unwrap();
    });
}

#[test]
fn a_connection_that_panics_on_its_lane_is_over() {
    let (shared, lane) = (runtime("shared"), runtime("lane"));
    let lanes = Lanes::new(vec![lane.handle().clone()]);
    let place = lanes.place();
    let own = place.clone().unwrap();
    let connection = Box::pin(async move {
        own.suit(Errand::Write).await;
        panic!("meant to");
    });
    let driven = async { timeout(LONG, lanes.drive(connection, place)).await };
    shared.block_on(driven).expect("it ends");
    assert_eq!(lanes.0[0].connections.load(Relaxed), 0);
}
