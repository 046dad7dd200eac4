//! Watches over WebSocket: the handshake, the frames, and the token in a subprotocol.
//!
//! Written by hand: the server sends whole unmasked messages and ignores what it is sent, which is
//! less code than the wrapping of a library would be. Contract: RFC 6455, upstream's
//! `endpoints/handlers/watch.go` and `authentication/request/websocket`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use ring::digest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf};
use tokio::sync::mpsc;
use tracing::debug;

use crate::answer::Failure;
use crate::body::Body;

const KEY: HeaderName = header::SEC_WEBSOCKET_KEY;
const PROTOCOL: HeaderName = header::SEC_WEBSOCKET_PROTOCOL;
const TOKEN_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";
/// What RFC 6455 appends to a client's key before hashing it.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Control frames carry no more than this.
const CONTROL_BYTES_MAX: u64 = 125;
/// A close frame that says that all is well.
const CLOSE: &[u8] = &[0x88, 2, 0x03, 0xe8];
const CLOSE_OPCODE: u8 = 8;
const PING_OPCODE: u8 = 9;
const PONG: u8 = 0x8a;

/// How messages are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// As text.
    Text,
    /// As bytes.
    Binary,
}

impl Message {
    /// Puts a payload into a frame of its own.
    pub(crate) fn frame(self, payload: &[u8]) -> Bytes {
        let opcode = match self {
            Message::Text => 0x81,
            Message::Binary => 0x82,
        };
        let mut out = BytesMut::with_capacity(payload.len() + 10);
        write_frame(opcode, payload, &mut out);
        out.freeze()
    }
}

fn write_frame(first: u8, payload: &[u8], out: &mut BytesMut) {
    let length = payload.len();
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => out.extend_from_slice(&[first, short]),
        (_, Ok(medium)) => {
            out.extend_from_slice(&[first, 126]);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.extend_from_slice(&[first, 127]);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// Whether a request wants to go on as a WebSocket.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE);
    let websocket = upgrade.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let connection = headers.get_all(header::CONNECTION).iter();
    let mut connection = connection.filter_map(|value| value.to_str().ok());
    websocket && connection.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Moves a token out of the subprotocols, where browsers put it, to where all others have it.
pub(crate) fn take_token(headers: &mut HeaderMap) -> Result<(), Failure> {
    if !is_wanted(headers) {
        return Ok(());
    }
    let (mut token, mut others) = (None, Vec::new());
    for protocol in protocols(headers) {
        match protocol.strip_prefix(TOKEN_PREFIX) {
            None => others.push(protocol),
            Some(encoded) if token.is_none() => token = Some(encoded.to_owned()),
            Some(_) => return Err(unauthorized()),
        }
    }
    let Some(token) = token else { return Ok(()) };
    let decoded = URL_SAFE_NO_PAD.decode(token).ok();
    let decoded = decoded.and_then(|token| String::from_utf8(token).ok());
    let bearer = decoded.ok_or_else(unauthorized)?;
    // One subprotocol must be left, for the answer to agree to.
    if others.is_empty() {
        return Err(unauthorized());
    }
    let text = |text: String| HeaderValue::from_str(&text).map_err(|_| unauthorized());
    headers.insert(PROTOCOL, text(others.join(","))?);
    if !headers.contains_key(header::AUTHORIZATION) && !bearer.is_empty() {
        headers.insert(header::AUTHORIZATION, text(format!("Bearer {bearer}"))?);
    }
    Ok(())
}

fn unauthorized() -> Failure {
    Failure::new(401, "Unauthorized", "Unauthorized")
}

fn protocols(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(PROTOCOL).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|protocol| protocol.trim().to_owned())
        .filter(|protocol| !protocol.is_empty())
        .collect()
}

/// Agrees to the handshake; frames follow on the connection.
pub(crate) fn answer(
    headers: &HeaderMap,
    upgrade: OnUpgrade,
    frames: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Response<Body>, Failure> {
    let bad = |text: &str| Failure::new(400, "BadRequest", text);
    let key = headers
        .get(KEY)
        .ok_or_else(|| bad("missing Sec-WebSocket-Key"))?;
    if headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&HeaderValue::from_static("13")) {
        return Err(bad("missing or bad WebSocket Version"));
    }
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(MAGIC.as_bytes());
    let accept = STANDARD.encode(hash.finish());
    let accept = HeaderValue::from_str(&accept).expect("base64 is header text");
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let sent = answer.headers_mut();
    sent.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    sent.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    sent.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocols(headers).first()
        && let Ok(protocol) = HeaderValue::from_str(protocol)
    {
        sent.insert(PROTOCOL, protocol);
    }
    tokio::spawn(async move {
        match upgrade.await {
            Ok(connection) => send(connection, frames).await,
            Err(error) => debug!(%error, "a client did not go on as a WebSocket"),
        }
    });
    Ok(answer)
}

/// Sends frames until they end or the client leaves.
async fn send(connection: Upgraded, frames: impl Stream<Item = Bytes>) {
    let (reader, mut writer) = tokio::io::split(TokioIo::new(connection));
    let (pings, mut pinged) = mpsc::channel(1);
    let mut reading = std::pin::pin!(read(reader, pings));
    let mut frames = std::pin::pin!(frames);
    loop {
        let frame = tokio::select! {
            _ = &mut reading => break,
            Some(pong) = pinged.recv() => Some(pong),
            frame = frames.next() => frame,
        };
        let Some(frame) = frame else { break };
        if writer.write_all(&frame).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    // A client that is gone already needs no goodbye.
    let _ = writer.write_all(CLOSE).await;
    let _ = writer.shutdown().await;
}

/// Ignores what the client sends, but for pings, until it closes.
async fn read(
    mut reader: ReadHalf<TokioIo<Upgraded>>,
    pings: mpsc::Sender<Bytes>,
) -> std::io::Result<()> {
    loop {
        let mut start = [0; 2];
        reader.read_exact(&mut start).await?;
        let [first, second] = start;
        let length = match second & 0x7f {
            126 => u64::from(reader.read_u16().await?),
            127 => reader.read_u64().await?,
            short => u64::from(short),
        };
        // Clients mask what they send; one that does not is not heard any longer.
        if second & 0x80 == 0 {
            return Ok(());
        }
        let mut mask = [0; 4];
        reader.read_exact(&mut mask).await?;
        match first & 0x0f {
            CLOSE_OPCODE => return Ok(()),
            PING_OPCODE if length <= CONTROL_BYTES_MAX => {
                let mut payload = [0; CONTROL_BYTES_MAX as usize];
                let payload = &mut payload[..length as usize];
                reader.read_exact(payload).await?;
                for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                    *byte ^= mask;
                }
                let mut pong = BytesMut::new();
                write_frame(PONG, payload, &mut pong);
                // A client that pings faster than it reads gets fewer answers.
                let _ = pings.try_send(pong.freeze());
            }
            _ => {
                let mut skipped = (&mut reader).take(length);
                tokio::io::copy(&mut skipped, &mut tokio::io::sink()).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn lengths_of_frames_have_three_forms() {
        for (length, head) in [
            (5, vec![0x81, 5]),
            (200, vec![0x81, 126, 0, 200]),
            (70_000, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]),
        ] {
            let frame = Message::Text.frame(&vec![b'x'; length]);
            assert_eq!(frame[..head.len()], head);
            assert_eq!(frame.len(), head.len() + length);
        }
    }

    #[test]
    fn a_token_comes_out_of_the_subprotocols() {
        let token = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode("secret"));
        let asked = |protocols: &str| {
            let mut headers = headers(&[
                ("upgrade", "WebSocket"),
                ("connection", "keep-alive, Upgrade"),
                ("sec-websocket-protocol", protocols),
            ]);
            take_token(&mut headers).map(|()| headers)
        };
        let taken = asked(&format!("{token}, base64.binary.k8s.io")).unwrap();
        assert_eq!(taken[header::AUTHORIZATION], "Bearer secret");
        assert_eq!(taken[PROTOCOL], "base64.binary.k8s.io");
        assert!(asked(&token).is_err());
        assert!(asked(&format!("{token},{token},other")).is_err());
        assert!(asked(&format!("{TOKEN_PREFIX}???,other")).is_err());
        assert!(!asked("other").unwrap().contains_key(header::AUTHORIZATION));
    }
}
