//! Clients that stop reading, on a clock that runs as fast as nothing happens.

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Empty};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::Instant;

use super::*;
use crate::body::Body;

/// No socket holds more than this.
const SOCKET_BYTES: usize = 4096;

/// A watch in which something happens every second, or one answer.
async fn answer(
    request: Request<hyper::body::Incoming>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let body = if request.uri().path() == "/watch" {
        Body::stream(stream::unfold((), |()| async {
            sleep(Duration::from_secs(1)).await;
            Some((Bytes::from(vec![b'x'; 1024]), ()))
        }))
    } else {
        Body::full("ok".into())
    };
    Ok(Response::new(body))
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_stops_reading_is_cut_off_within_a_minute() {
    let (mut client, socket) = duplex(SOCKET_BYTES);
    let began = Instant::now();
    let serving = tokio::spawn(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(Unstalled::new(socket)), service_fn(answer)),
    );
    let request = b"GET /watch HTTP/1.1\r\nhost: x\r\n\r\n";
    client.write_all(request).await.unwrap();
    let ended = serving.await.unwrap();
    assert!(ended.is_err());
    // A few seconds until the socket is full, and then the limit.
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_reads_slowly_goes_on() {
    let (mut client, socket) = duplex(SOCKET_BYTES);
    let serving = tokio::spawn(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(Unstalled::new(socket)), service_fn(answer)),
    );
    let request = b"GET /watch HTTP/1.1\r\nhost: x\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut some = [0; 1024];
    for _ in 0..20 {
        sleep(Duration::from_secs(30)).await;
        assert!(client.read(&mut some).await.unwrap() > 0);
    }
    assert!(!serving.is_finished());
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_ends_alone() {
    let (client, socket) = duplex(1024 * 1024);
    let serving = tokio::spawn(
        hyper::server::conn::http2::Builder::new(Streams)
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(Unstalled::new(socket)), service_fn(answer)),
    );
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(SOCKET_BYTES as u32)
        .handshake(TokioIo::new(client))
        .await
        .unwrap();
    tokio::spawn(connection);
    let ask = |path: &str| {
        let uri = format!("http://x{path}");
        Request::builder()
            .uri(uri)
            .body(Empty::<Bytes>::new())
            .unwrap()
    };
    let mut unread = sender.send_request(ask("/watch")).await.unwrap();
    let mut read = sender.send_request(ask("/watch")).await.unwrap();
    // The other watch of the same client is read, and goes on beyond the limit.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        let frame = read.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap().len(), 1024);
    }
    let mut taken = 0;
    let ended = loop {
        match unread.body_mut().frame().await {
            Some(Ok(frame)) => taken += frame.into_data().unwrap().len(),
            other => break other,
        }
    };
    assert!(ended.is_some_and(|ended| ended.is_err()), "it is cut short");
    assert!(taken <= SOCKET_BYTES, "{taken} bytes were held for it");
    let whole = sender.send_request(ask("/")).await.unwrap();
    let whole = whole.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole, "ok");
    serving.abort();
}
