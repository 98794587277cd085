//! The steps of a run: what applications, users, browsers and networks do, and when.

use motet_protocol::Rng;

use crate::faults::Fault;
use crate::setup::Setup;
use crate::stage::Stage;
use crate::world::{MS, SECOND};

/// Steps of a run, at least.
pub(crate) const STEPS_MIN: usize = 200;
/// Faults of a run, at least.
pub(crate) const FAULTS_MIN: usize = 3;

/// No schedule has other steps after this time.
const FAULTS_END: u64 = 23 * SECOND;

/// Whom a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The tab whose node owns this topic.
    Owner(usize),
    /// The tab whose node is coordinator.
    Coordinator,
    /// The tab with this number, counted around.
    Tab(usize),
}

/// One thing that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// A tab of the setup opens.
    Open(usize),
    /// An application subscribes a topic with so many earlier messages.
    Subscribe(usize, usize, u32),
    /// An application takes a handler of a topic away.
    Unsubscribe(usize, usize),
    /// Somebody outside publishes so many messages.
    ServerPublish(usize, u32),
    /// An application publishes so many messages.
    PagePublish(usize, usize, u32),
    /// An application aborts its oldest publication.
    Abort(usize),
    /// A tab is shown or hidden.
    Show(usize, bool),
    /// A fault.
    Fault {
        /// Which.
        fault: Fault,
        /// Whom it strikes.
        aim: Aim,
        /// How long it lasts, microseconds.
        duration: u64,
        /// It waits until some route is at this stage.
        stage: Option<Stage>,
    },
}

/// An action and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Virtual microseconds.
    pub(crate) at: u64,
    pub(crate) action: Action,
}

/// Draws the steps of a run, in order of time.
pub(crate) fn draw(setup: &Setup, rng: &mut Rng) -> Vec<Step> {
    let span = (8 + rng.below(14)) * SECOND;
    let mut steps = Vec::new();
    for tab in 0..setup.tabs.len() {
        // Four tabs begin at once, the others come when they like.
        let late = if tab < 4 || setup.crowd { 300 * MS } else { span / 2 };
        steps.push(Step { at: rng.below(late), action: Action::Open(tab) });
    }
    let calm = setup.crowd || rng.below(4) == 0;
    let faults = if calm { FAULTS_MIN } else { FAULTS_MIN + rng.below(8) as usize };
    if calm && rng.below(2) == 0 {
        draw_long_freeze(setup, &mut steps, rng);
    }
    for _ in 0..faults {
        draw_fault(setup, span, &mut steps, rng);
    }
    let count = STEPS_MIN + rng.below(40) as usize;
    while steps.len() < count {
        let at = 100 * MS + rng.below(span);
        steps.push(Step { at, action: draw_use(setup, rng) });
    }
    steps.sort_by_key(|step| step.at);
    steps
}

fn draw_use(setup: &Setup, rng: &mut Rng) -> Action {
    let tab = rng.below(setup.tabs.len() as u64) as usize;
    let topic = rng.below(setup.topics.len() as u64) as usize;
    match rng.below(100) {
        0..55 => Action::ServerPublish(topic, burst(rng)),
        55..72 => Action::PagePublish(tab, topic, burst(rng)),
        72..82 => Action::Subscribe(tab, topic, if rng.below(3) == 0 { 5 } else { 0 }),
        82..94 => Action::Unsubscribe(tab, topic),
        94..96 => Action::Abort(tab),
        _ => Action::Show(tab, rng.below(2) == 0),
    }
}

fn burst(rng: &mut Rng) -> u32 {
    match rng.below(20) {
        0 => 12,
        1..4 => 3,
        _ => 1,
    }
}

/// A tab that stops so long that it must be replaced, late enough for nothing else to happen.
fn draw_long_freeze(setup: &Setup, steps: &mut Vec<Step>, rng: &mut Rng) {
    let topic = rng.below(setup.topics.len() as u64) as usize;
    let aim = if rng.below(2) == 0 { Aim::Owner(topic) } else { Aim::Coordinator };
    let fault = Fault::Freeze;
    let duration = 13 * SECOND + rng.below(6 * SECOND);
    let at = FAULTS_END + rng.below(SECOND);
    steps.push(Step { at, action: Action::Fault { fault, aim, duration, stage: None } });
    // Somebody goes on publishing, so that the run lasts as long.
    for _ in 0..10 {
        let at = at + rng.below(duration);
        steps.push(Step { at, action: Action::ServerPublish(topic, 1) });
    }
}

fn draw_fault(setup: &Setup, span: u64, steps: &mut Vec<Step>, rng: &mut Rng) {
    let fault = Fault::ALL[rng.below(Fault::ALL.len() as u64) as usize];
    let topic = rng.below(setup.topics.len() as u64) as usize;
    let aim = match rng.below(10) {
        0..4 => Aim::Owner(topic),
        4..7 => Aim::Coordinator,
        _ => Aim::Tab(rng.below(setup.tabs.len() as u64) as usize),
    };
    let duration = match rng.below(4) {
        0 => rng.below(300 * MS),
        1 => rng.below(2 * SECOND),
        2 => rng.below(9 * SECOND),
        _ => 9 * SECOND + rng.below(9 * SECOND),
    };
    let stage =
        (rng.below(2) == 0).then(|| Stage::ALL[rng.below(Stage::ALL.len() as u64) as usize]);
    let at = 200 * MS + rng.below(span);
    steps.push(Step { at, action: Action::Fault { fault, aim, duration, stage } });
    if rng.below(3) == 0 {
        // A second fault right behind the first finds the cluster off balance.
        let fault = Fault::ALL[rng.below(Fault::ALL.len() as u64) as usize];
        let at = at + rng.below(120 * MS);
        let aim = if rng.below(2) == 0 { Aim::Coordinator } else { Aim::Owner(topic) };
        steps.push(Step { at, action: Action::Fault { fault, aim, duration, stage: None } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_has_its_steps_and_faults_of_many_kinds() {
        let mut rng = Rng::from_seed([7; 32]);
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let setup = Setup::draw(&mut rng);
            let steps = draw(&setup, &mut rng);
            let faults = steps.iter().filter_map(|step| match step.action {
                Action::Fault { fault, .. } => Some(fault),
                _ => None,
            });
            let faults: Vec<_> = faults.collect();
            assert!(steps.len() >= STEPS_MIN && faults.len() >= FAULTS_MIN);
            assert!(setup.tabs.len() >= 4);
            assert!(steps.is_sorted_by_key(|step| step.at));
            kinds.extend(faults);
        }
        assert!(kinds.len() >= 8, "{kinds:?}");
    }
}
