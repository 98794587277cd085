//! What the codecs refuse, what they forgive, and that payloads pass untouched.

use bytes::Bytes;
use motet_realtime::codec::{DecodeError, EncodeError, Encoding, Limits};
use motet_realtime::message::{
    Command, DisconnectCode, Publication, PublishRequest, Push, PushEvent, Reply, ReplyBody,
    Request,
};

fn commands(encoding: Encoding, frame: &[u8]) -> Result<Vec<Command<Bytes>>, DecodeError> {
    encoding.commands(Bytes::copy_from_slice(frame), Limits::COMMANDS)?.collect()
}

fn replies(encoding: Encoding, frame: &[u8]) -> Result<Vec<Reply<Bytes>>, DecodeError> {
    encoding.replies(Bytes::copy_from_slice(frame), Limits::REPLIES)?.collect()
}

fn publication(payload: &str) -> Reply<Bytes> {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    Reply::push(Push::publication("c", Publication::new(payload)))
}

fn json_of(reply: &Reply<Bytes>) -> String {
    let mut frame = Vec::new();
    Encoding::Json.append_reply(&mut frame, reply).expect("the payload is JSON");
    String::from_utf8(frame).expect("the payload is JSON")
}

#[test]
fn an_empty_frame_of_a_client_is_a_bad_request() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let error = commands(encoding, b"").unwrap_err();
        assert!(matches!(error, DecodeError::EmptyFrame), "{error}");
        assert_eq!(error.disconnect_code(), DisconnectCode::BAD_REQUEST);
    }
}

#[test]
fn one_line_break_may_end_a_frame_but_a_client_sends_no_blank_line() {
    assert_eq!(commands(Encoding::Json, b"{}\n{}\n").unwrap().len(), 2);
    for frame in [&b"\n"[..], b"{}\n\n", b"{}\n\n{}", b"\n{}"] {
        let error = commands(Encoding::Json, frame).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed(_)), "{error}");
        assert_eq!(error.disconnect_code(), DisconnectCode::BAD_REQUEST);
    }
}

#[test]
fn blank_lines_of_a_server_are_skipped() {
    assert_eq!(
        replies(Encoding::Json, b"\n{}\n \n{}\n\n").unwrap(),
        [Reply::ping(), Reply::ping()]
    );
    assert_eq!(replies(Encoding::Json, b"").unwrap(), []);
    assert_eq!(replies(Encoding::Protobuf, b"").unwrap(), []);
}

#[test]
fn decoding_ends_at_the_first_bad_message_and_keeps_those_before_it() {
    let frame = Bytes::from_static(b"{\"id\":1,\"ping\":{}}\n{\"id\":\"x\"}\n{}");
    let mut decoded = Encoding::Json.commands(frame, Limits::COMMANDS).unwrap();
    assert_eq!(decoded.next().unwrap().unwrap(), Command::new(1, Request::Ping));
    assert!(decoded.next().unwrap().is_err());
    assert!(decoded.next().is_none());
    let frame = Bytes::from_static(b"\x04\x08\x01\x5a\x00\x02\x08\x80\x00");
    let mut decoded = Encoding::Protobuf.commands(frame, Limits::COMMANDS).unwrap();
    assert_eq!(decoded.next().unwrap().unwrap(), Command::new(1, Request::Ping));
    assert!(matches!(decoded.next(), Some(Err(DecodeError::Malformed(_)))));
    assert!(decoded.next().is_none());
}

#[test]
fn a_length_prefix_beyond_the_frame_or_the_limit_is_refused_unread() {
    let beyond = commands(Encoding::Protobuf, b"\x05\x08\x01").unwrap_err();
    assert!(matches!(beyond, DecodeError::LengthPrefix), "{beyond}");
    let endless = commands(Encoding::Protobuf, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert!(matches!(endless, Err(DecodeError::LengthPrefix)));
    let huge = commands(Encoding::Protobuf, b"\xff\xff\xff\xff\x07").unwrap_err();
    assert!(matches!(huge, DecodeError::MessageTooLarge { bytes: 0x7fff_ffff }), "{huge}");
    assert_eq!(huge.disconnect_code(), DisconnectCode::MESSAGE_TOO_BIG);
    // A field inside a message that claims more than the message has.
    let inner = commands(Encoding::Protobuf, b"\x04\x3a\xff\xff\x03").unwrap_err();
    assert!(matches!(inner, DecodeError::Malformed(_)), "{inner}");
}

#[test]
fn frames_and_messages_above_the_limit_are_refused() {
    let limits = Limits { frame_bytes_max: 20, message_bytes_max: 5 };
    let frame = |bytes: &'static [u8]| Bytes::from_static(bytes);
    let json = Encoding::Json;
    assert!(json.commands(frame(b"{}\n{}\n{}\n{}\n{}\n{}\n{}"), limits).is_ok());
    let large = json.commands(frame(b"{}\n{}\n{}\n{}\n{}\n{}\n{}\n"), limits).err().unwrap();
    assert!(matches!(large, DecodeError::FrameTooLarge { bytes: 21 }), "{large}");
    let mut decoded = json.commands(frame(b"{}\n{    }"), limits).unwrap();
    assert!(decoded.next().unwrap().is_ok());
    assert!(matches!(decoded.next(), Some(Err(DecodeError::MessageTooLarge { bytes: 6 }))));
    let mut decoded = Encoding::Protobuf.commands(frame(b"\x06\x08\x01\x08\x01\x08\x01"), limits);
    let first = decoded.as_mut().ok().and_then(Iterator::next);
    assert!(matches!(first, Some(Err(DecodeError::MessageTooLarge { bytes: 6 }))));
}

#[test]
fn what_is_not_known_is_ignored() {
    let text = br#"{"id":1,"connect":{"name":"x","dict":"d","profile":"p","later":[1]},"more":{}}"#;
    let json = commands(Encoding::Json, text).unwrap();
    // Fields 8 and 9 of a connect request, and field 77 of the command.
    let binary = b"\x10\x08\x01\x22\x09\x22\x01x\x42\x01d\x4a\x01p\xe8\x04\x01";
    assert_eq!(commands(Encoding::Protobuf, binary).unwrap(), json);
    let unknown = replies(Encoding::Json, br#"{"push":{"channel":"c","later":{"x":1}}}"#).unwrap();
    let push = Push { channel: "c".into(), event: PushEvent::Unknown };
    assert_eq!(unknown, [Reply::push(push)]);
}

#[test]
fn null_is_absent_everywhere_but_in_a_payload() {
    let text = br#"{"id":1,"publish":{"channel":"c","data":null,"type":null,"motet":null}}"#;
    let request = PublishRequest {
        channel: "c".into(),
        data: Bytes::from_static(b"null"),
        kind: 0,
        motet: None,
    };
    assert_eq!(
        commands(Encoding::Json, text).unwrap(),
        [Command::new(1, Request::Publish(request))]
    );
}

#[test]
fn a_command_with_several_requests_is_refused_and_ends_the_frame() {
    let json = b"{\"id\":1,\"send\":{},\"unsubscribe\":{\"channel\":\"c\"}}\n{}";
    let binary = b"\x09\x08\x01\x62\x00\x32\x03\x0a\x01c\x00";
    for (encoding, frame) in [(Encoding::Json, &json[..]), (Encoding::Protobuf, &binary[..])] {
        let frame = Bytes::from_static(frame);
        let mut decoded = encoding.commands(frame, Limits::COMMANDS).unwrap();
        let error = decoded.next().unwrap().unwrap_err();
        assert!(matches!(error, DecodeError::SeveralRequests), "{error}");
        assert_eq!(error.disconnect_code(), DisconnectCode::BAD_REQUEST);
        assert!(decoded.next().is_none());
    }
}

#[test]
fn a_payload_keeps_every_byte_but_raw_line_breaks() {
    let payload = r#"{"b" : 1.0e+2,"a":"x\ny/\/@","b":0}"#.replace('@', "\u{e9}");
    let expected = format!(r#"{{"push":{{"channel":"c","pub":{{"data":{payload}}}}}}}"#);
    assert_eq!(json_of(&publication(&payload)), expected);
    assert_eq!(replies(Encoding::Json, expected.as_bytes()).unwrap(), [publication(&payload)]);
    let broken = json_of(&publication("[1,\r\n 2,\n\"a\\nb\"]"));
    assert_eq!(broken, r#"{"push":{"channel":"c","pub":{"data":[1, 2,"a\nb"]}}}"#);
}

#[test]
fn line_breaks_in_text_are_escaped() {
    let push = Push::publication("a\nb", Publication::new(Bytes::new()));
    assert_eq!(json_of(&Reply::push(push)), r#"{"push":{"channel":"a\nb","pub":{}}}"#);
}

#[test]
fn a_binary_payload_has_no_json_form_and_leaves_the_frame_as_it_was() {
    for payload in [&b"\xff\xfe"[..], b"{", b"1}\n{\"push\":{}", b"nul", b"\"\n\"", b"\"\xff\""] {
        let mut frame = b"{}".to_vec();
        let push = Push::publication("c", Publication::new(Bytes::from_static(payload)));
        let error = Encoding::Json.append_reply(&mut frame, &Reply::push(push)).unwrap_err();
        assert!(matches!(error, EncodeError::PayloadNotJson(_)));
        assert_eq!(error.disconnect_code(), DisconnectCode::INAPPROPRIATE_PROTOCOL);
        assert_eq!(frame, b"{}");
    }
}

#[test]
fn deeply_nested_payloads_pass_and_cost_no_stack() {
    let payload = "[".repeat(20_000) + &"]".repeat(20_000);
    let text = json_of(&publication(&payload));
    assert_eq!(replies(Encoding::Json, text.as_bytes()).unwrap(), [publication(&payload)]);
}

#[test]
fn a_small_payload_does_not_pin_the_frame_it_came_in() {
    let mut frame = Vec::new();
    for payload in ["1", "2", "3", "4"] {
        Encoding::Json.append_reply(&mut frame, &publication(payload)).unwrap();
    }
    let frame = Bytes::from(frame);
    let decoded: Vec<_> = Encoding::Json.replies(frame.clone(), Limits::REPLIES).unwrap().collect();
    assert_eq!(decoded.len(), 4);
    assert!(frame.is_unique(), "four small payloads are copies");
    drop(decoded);
    let large = publication(&format!("\"{}\"", "x".repeat(1_000)));
    let mut frame = Vec::new();
    Encoding::Protobuf.append_reply(&mut frame, &large).unwrap();
    let frame = Bytes::from(frame);
    let decoded: Vec<_> =
        Encoding::Protobuf.replies(frame.clone(), Limits::REPLIES).unwrap().collect();
    assert!(!frame.is_unique(), "a large payload shares the frame's memory");
    let Ok(Reply { body: ReplyBody::Push(push), .. }) = &decoded[0] else { panic!("no push") };
    let PushEvent::Publication(publication) = &push.event else { panic!("no publication") };
    assert_eq!(publication.data.len(), 1_002);
}
