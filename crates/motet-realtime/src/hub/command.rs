//! Commands of a connection: one at a time, in order.

use core::time::Duration;

use motet_protocol::Instant;

use super::{Hub, SessionId};
use crate::message::{Command, DisconnectCode, ErrorReply, Reply, Request, ServerErrorCode};
use crate::payload::Payload;
use crate::server::{Phase, Session, Step, TokenKind};
use crate::{hub::Output, hub::Waiter, server};

impl<P: Payload> Hub<P> {
    pub(super) fn open(&mut self, now: Instant, id: SessionId) {
        let session = Session::new(now + self.options.stale_close_delay);
        let known = self.sessions.insert(id, Box::new(session));
        assert!(known.is_none(), "a session id is used once");
        if self.stopping {
            self.disconnect(id, DisconnectCode::SHUTDOWN);
        } else {
            self.arm(id);
        }
    }

    pub(super) fn take_command(&mut self, now: Instant, id: SessionId, command: Command<P>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.waiting.is_some() && !command.is_pong() {
            if session.backlog.len() >= self.options.pending_commands_max {
                self.disconnect(id, DisconnectCode::TOO_MANY_REQUESTS);
            } else {
                session.backlog.push_back(command);
            }
            return;
        }
        self.carry_out(now, id, command);
        self.arm(id);
    }

    /// Carries on with the backlog once the current command is answered.
    pub(super) fn next_command(&mut self, now: Instant, id: SessionId) {
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return };
            if session.waiting.is_some() {
                break;
            }
            let Some(command) = session.backlog.pop_front() else { break };
            self.carry_out(now, id, command);
        }
        self.arm(id);
    }

    fn carry_out(&mut self, now: Instant, id: SessionId, command: Command<P>) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Command { id: command_id, request } = command;
        let is_connect = matches!(request, Some(Request::Connect(_)));
        let in_order = match session.phase {
            Phase::Fresh { .. } => is_connect,
            Phase::Connected => !is_connect,
            Phase::Connecting { .. } | Phase::Refused { .. } => false,
        };
        let has_id = command_id > 0 || matches!(request, Some(Request::Send(_)) | None);
        if !in_order || !has_id {
            return self.disconnect_bad_request(id);
        }
        if command_id > 0 && !self.spend_allowance(now, id) {
            return self.refuse(id, command_id, ServerErrorCode::TOO_MANY_REQUESTS);
        }
        match request {
            None if command_id == 0 => self.take_pong(id),
            None | Some(Request::Ping) => self.disconnect_bad_request(id),
            Some(Request::Connect(request)) => self.connect(now, id, command_id, request),
            Some(Request::Subscribe(request)) => self.subscribe(now, id, command_id, request),
            Some(Request::Unsubscribe(request)) => {
                self.unsubscribe(id, command_id, &request.channel);
            }
            Some(Request::Publish(request)) => self.publish(now, id, command_id, request),
            Some(Request::Presence(request)) => {
                self.presence(now, id, command_id, &request.channel);
            }
            Some(Request::PresenceStats(request)) => {
                self.presence_stats(now, id, command_id, &request.channel);
            }
            Some(Request::History(request)) => self.history(now, id, command_id, request),
            Some(Request::Send(_)) => self.disconnect(id, DisconnectCode::NOT_AVAILABLE),
            Some(Request::Rpc(_)) => self.refuse(id, command_id, ServerErrorCode::NOT_AVAILABLE),
            Some(Request::Refresh(request)) => self.refresh(now, id, command_id, request.token),
            Some(Request::SubRefresh(request)) => self.sub_refresh(now, id, command_id, request),
        }
    }

    fn spend_allowance(&mut self, now: Instant, id: SessionId) -> bool {
        let per_second = self.options.commands_per_second_max;
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        if per_second == 0 {
            return true;
        }
        let allowance = &mut session.allowance;
        if allowance.renews_at <= now {
            *allowance =
                server::Allowance { left: per_second, renews_at: now + Duration::from_secs(1) };
        }
        let allowed = allowance.left > 0;
        allowance.left = allowance.left.saturating_sub(1);
        allowed
    }

    /// Answers a command with an error. A refused connect leaves the connection unusable.
    pub(super) fn refuse(&mut self, id: SessionId, command: u32, error: impl Into<ErrorReply>) {
        if let Some(session) = self.sessions.get_mut(&id)
            && let Phase::Fresh { stale_at } | Phase::Connecting { stale_at } = session.phase
        {
            session.phase = Phase::Refused { stale_at };
        }
        self.send(id, Reply::error(command, error));
    }

    /// Makes a session's current command wait for an answer that carries `op`.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        id: SessionId,
        op: crate::broker::OpId,
        step: Step<P>,
    ) {
        let deadline = now + self.options.operation_timeout;
        if let Some(session) = self.sessions.get_mut(&id) {
            assert!(session.waiting.is_none(), "one command at a time");
            session.waiting = Some(server::Waiting { op, deadline, step });
        }
    }

    /// Asks the driver to verify a token for a session's current command.
    pub(super) fn verify(
        &mut self,
        now: Instant,
        id: SessionId,
        kind: TokenKind,
        token: String,
        step: Step<P>,
    ) {
        let op = self.draw_op();
        self.pending.insert(op, Waiter::Command(id));
        self.wait(now, id, op, step);
        self.outputs.push_back(Output::Verify { op, kind, token });
    }
}
