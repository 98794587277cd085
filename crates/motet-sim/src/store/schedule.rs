//! Draws a run from its seed: how many processes, how lossy their signals are, and every step.

use motet_protocol::Rng;
use motet_store::OnDelete;

use super::action::{
    Action, Change, DrawnWrite, Expected, Filter, Guest, Keys, Read, Search, Sort, Step,
};
use super::fault::Fault;
use super::model::Kept;
use super::model::body::{Body, KEYS, Link, MISSING, Part};
use super::model::rules::{Field, Reference, Schema, Shape, Spec, TYPES};
use super::model::write::Expiry;

/// Steps of a run, at least.
pub(crate) const STEPS_MIN: u64 = 500;

/// What a seed decides once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) processes: usize,
    /// Whether pokes between processes get lost, late, doubled and out of order.
    pub(crate) lossy: bool,
    /// How many documents or entries one transaction in the background takes.
    pub(crate) batch_max: usize,
    /// In a hundred steps, how often something goes wrong on the way.
    faults: u64,
    /// In a hundred writes, how many make documents that expire.
    expiring: u64,
    /// In a hundred documents, how many refer to others.
    referring: u64,
    /// In a thousand steps, how many change the catalogue.
    catalog: u64,
    /// How many types are used.
    kinds: u64,
    /// How many keys are used.
    keys: u64,
}

impl Setup {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self {
            processes: 2 + rng.below(3) as usize,
            lossy: rng.below(2) == 0,
            batch_max: [1, 2, 3, 5, 100][rng.below(5) as usize],
            faults: [4, 15, 30][rng.below(3) as usize],
            expiring: [0, 10, 40][rng.below(3) as usize],
            referring: [0, 20, 60][rng.below(3) as usize],
            catalog: [15, 40, 100][rng.below(3) as usize],
            kinds: 1 + rng.below(TYPES.len() as u64),
            keys: 3 + rng.below(KEYS.len() as u64 - 2),
        }
    }
}

pub(crate) fn draw(setup: &Setup, rng: &mut Rng) -> Vec<Step> {
    let count = STEPS_MIN + rng.below(40);
    (0..count).map(|_| draw_step(setup, rng)).collect()
}

fn draw_step(setup: &Setup, rng: &mut Rng) -> Step {
    let after_ms = match rng.below(40) {
        0 => 1_000 + rng.below(9_000),
        1..4 => 100 + rng.below(900),
        _ => rng.below(30),
    };
    let action = draw_action(setup, rng);
    let writes = action.operation().is_some_and(super::action::Operation::writes);
    let disturbed = writes && rng.below(100) < setup.faults;
    let mut guests = Vec::new();
    if disturbed && rng.below(3) > 0 {
        for _ in 0..1 + rng.below(2) {
            guests.push(draw_guest(setup, rng));
        }
    }
    let groups = if matches!(action, Action::Maintain) { rng.below(4) as u32 } else { 0 };
    let fault = (disturbed && (guests.is_empty() || rng.below(2) == 0))
        .then(|| (pick(rng, &Fault::OF_GROUPS), groups));
    let process = rng.below(setup.processes as u64) as usize;
    Step { after_ms, process, action, guests, fault, reversed: rng.below(2) == 0 }
}

fn draw_guest(setup: &Setup, rng: &mut Rng) -> Guest {
    let action = match rng.below(12) {
        0 => draw_catalog(setup, rng),
        1 => Action::Maintain,
        2 => match rng.below(3) {
            0 => Action::SetRetention(draw_kept(rng)),
            1 => draw_pin(rng),
            _ => Action::Commit,
        },
        3..5 => Action::Commit,
        _ => Action::Write(draw_writes(setup, rng)),
    };
    Guest {
        process: rng.below(setup.processes as u64) as usize,
        action,
        after_writes: rng.below(3) as u32 / 2,
        joins: rng.below(2) == 0,
    }
}

fn draw_action(setup: &Setup, rng: &mut Rng) -> Action {
    if rng.below(1_000) < setup.catalog {
        return draw_catalog(setup, rng);
    }
    match rng.below(218) {
        0..68 => Action::Write(draw_writes(setup, rng)),
        68..78 => Action::Begin,
        78..100 => Action::ReadInside(draw_read_inside(setup, rng)),
        100..114 => Action::WriteInside(draw_write(setup, rng)),
        114..126 => Action::Commit,
        126..136 => Action::Maintain,
        136..144 => Action::Read(Read::Get(draw_kind(setup, rng), draw_key(setup, rng))),
        144..150 => Action::Read(Read::Range(draw_kind(setup, rng), draw_keys(setup, rng))),
        150..176 => Action::Read(Read::Query(draw_kind(setup, rng), draw_search(rng))),
        176..184 => Action::ReadLog(rng.below(40)),
        184..188 => Action::Describe(draw_kind(setup, rng)),
        188..190 => Action::SetRetention(draw_kept(rng)),
        190..193 => Action::SetClock(draw_clock(rng)),
        193..195 => Action::Pause(rng.below(20_000)),
        195..197 => Action::ExpireViews,
        197..200 => Action::Reopen,
        200..206 => draw_pin(rng),
        _ => Action::ReadPage(1 + rng.below(8) as usize),
    }
}

fn draw_catalog(setup: &Setup, rng: &mut Rng) -> Action {
    let kind = draw_kind(setup, rng);
    match rng.below(6) {
        0 | 1 => Action::Define(kind, draw_spec(setup, rng)),
        2 => Action::DropIndex(kind, rng.below(4) as u8),
        _ => Action::CreateIndex(kind, rng.below(4) as u8, pick(rng, &Shape::ALL)),
    }
}

fn draw_spec(setup: &Setup, rng: &mut Rng) -> Spec {
    let schemas = [Schema::NeedsN, Schema::NAtMost4, Schema::ToIsText];
    let kinds = [OnDelete::NoAction, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull];
    let mut references = Vec::new();
    for field in [Field::To, Field::Refs] {
        if rng.below(5) < 3 && setup.referring > 0 {
            let to = draw_kind(setup, rng);
            references.push(Reference { field, to, on_delete: pick(rng, &kinds) });
        }
    }
    Spec {
        ttl_ms: (rng.below(100) < setup.expiring / 2).then(|| draw_ms(rng)),
        schema: (rng.below(3) == 0).then(|| (pick(rng, &schemas), rng.below(2) == 0)),
        references,
    }
}

fn draw_kept(rng: &mut Rng) -> Kept {
    Kept {
        age_ms: (rng.below(2) == 0).then(|| rng.below(20_000)),
        bytes: (rng.below(2) == 0).then(|| rng.below(6_000)),
        pin_bytes: if rng.below(3) == 0 { 1 << 30 } else { rng.below(12_000) },
        latest: rng.below(2) == 0,
    }
}

fn draw_pin(rng: &mut Rng) -> Action {
    let back = (rng.below(4) > 0).then(|| rng.below(30));
    Action::Pin(rng.below(2) as u8, back)
}

fn draw_clock(rng: &mut Rng) -> i64 {
    let far = rng.below(60_000).cast_signed();
    match rng.below(3) {
        0 => far,
        1 => -far,
        _ => 0,
    }
}

fn draw_writes(setup: &Setup, rng: &mut Rng) -> Vec<DrawnWrite> {
    let count = if rng.below(4) == 0 { 2 + rng.below(4) } else { 1 };
    (0..count).map(|_| draw_write(setup, rng)).collect()
}

fn draw_write(setup: &Setup, rng: &mut Rng) -> DrawnWrite {
    let change = match rng.below(20) {
        0..8 => Change::Put(draw_body(setup, rng)),
        8..10 => Change::Create(draw_body(setup, rng)),
        10..12 => Change::Update(draw_body(setup, rng)),
        12..16 => Change::Patch(draw_part(rng)),
        _ => Change::Remove,
    };
    let if_version = (rng.below(6) == 0).then(|| {
        pick(rng, &[Expected::None, Expected::Present, Expected::Present, Expected::Stale])
    });
    let expiry = match rng.below(100) {
        percent if percent < setup.expiring => Expiry::AfterMs(draw_ms(rng)),
        95.. => Expiry::Never,
        _ => Expiry::Unsaid,
    };
    let (kind, key) = (draw_kind(setup, rng), draw_key(setup, rng));
    DrawnWrite { kind, key, change, if_version, expiry }
}

fn draw_body(setup: &Setup, rng: &mut Rng) -> Body {
    let refers = rng.below(100) < setup.referring;
    Body {
        n: (rng.below(6) > 0).then(|| rng.below(7).cast_signed()),
        u: (rng.below(3) > 0).then(|| rng.below(12) as u8),
        tags: (rng.below(2) == 0).then(|| (0..rng.below(4)).map(|_| rng.below(4) as u8).collect()),
        open: (rng.below(3) > 0).then(|| rng.below(2) == 0),
        to: if refers && rng.below(3) > 0 { Link::To(draw_target(rng)) } else { Link::Absent },
        refs: (refers && rng.below(2) == 0)
            .then(|| (0..rng.below(3)).map(|_| draw_target(rng)).collect()),
    }
}

fn draw_part(rng: &mut Rng) -> Part {
    match rng.below(10) {
        0 | 1 => Part::SetN(rng.below(7).cast_signed()),
        2..5 => Part::IncN(1 - 2 * rng.below(2).cast_signed()),
        5 | 6 => Part::AppendTag(rng.below(4) as u8),
        7 => Part::PullTag(rng.below(4) as u8),
        8 => Part::SetU(rng.below(12) as u8),
        _ if rng.below(2) == 0 => Part::UnsetU,
        _ => Part::SetTo(draw_target(rng)),
    }
}

/// Most references are turned to a document that is there when the write is made.
fn draw_target(rng: &mut Rng) -> u8 {
    if rng.below(20) == 0 { MISSING } else { rng.below(KEYS.len() as u64) as u8 }
}

fn draw_read_inside(setup: &Setup, rng: &mut Rng) -> Read {
    match rng.below(5) {
        0..3 => Read::Get(draw_kind(setup, rng), draw_key(setup, rng)),
        _ => Read::Range(draw_kind(setup, rng), draw_keys(setup, rng)),
    }
}

fn draw_keys(setup: &Setup, rng: &mut Rng) -> Keys {
    Keys {
        prefix: rng.below(3) == 0,
        from: (rng.below(3) == 0).then(|| draw_key(setup, rng)),
        limit: (rng.below(3) == 0).then(|| 1 + rng.below(4) as usize),
    }
}

fn draw_search(rng: &mut Rng) -> Search {
    let n = rng.below(7).cast_signed();
    let (tag, u) = (rng.below(4) as u8, rng.below(12) as u8);
    let filter = match rng.below(9) {
        0 => Filter::All,
        1 => Filter::N(n),
        2 => Filter::NFrom(n),
        3 => Filter::NBetween(n, n + rng.below(4).cast_signed()),
        4 => Filter::Tag(tag),
        5 => Filter::U(u),
        6 => Filter::OpenN(n),
        7 => Filter::OpenU(u),
        _ => Filter::TagN(tag, n),
    };
    let sort = pick(rng, &[Sort::None, Sort::N, Sort::NDescending, Sort::NThenUDescending]);
    Search { filter, sort, limit: (rng.below(2) == 0).then(|| 1 + rng.below(4) as usize) }
}

fn draw_kind(setup: &Setup, rng: &mut Rng) -> u8 {
    rng.below(setup.kinds) as u8
}

fn draw_key(setup: &Setup, rng: &mut Rng) -> u8 {
    // The last keys are the odd ones.
    (KEYS.len() as u64 - 1 - rng.below(setup.keys)) as u8
}

fn draw_ms(rng: &mut Rng) -> u64 {
    match rng.below(3) {
        0 => rng.below(100),
        1 => rng.below(2_000),
        _ => rng.below(60_000),
    }
}

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_its_steps_and_several_processes() {
        let mut rng = Rng::from_seed([7; 32]);
        for _ in 0..50 {
            let setup = Setup::draw(&mut rng);
            let steps = draw(&setup, &mut rng);
            assert!(steps.len() as u64 >= STEPS_MIN);
            assert!((2..=4).contains(&setup.processes));
            assert!(steps.iter().any(|step| step.fault.is_some()));
        }
    }
}
