//! Transactions of a session: reads of keys and ranges, and writes that depend on them.

use motet_store::{Error, KeyRange, Transaction};
use serde_json::json;

use super::dice::Dice;
use super::recorder::{Found, How, Line, Planned, Read, Reads};
use super::workload::Session;
use super::writes::{added, patch};

/// What a transaction is going to read.
enum Question {
    Key(&'static str, String),
    Prefix(&'static str, String, Option<usize>),
}

impl Session {
    /// Reads, and writes what follows from it, as often as it takes.
    pub(crate) fn transact(&mut self) {
        let questions = self.questions();
        let name = self.next_name();
        let (begun, targets) = (self.begin_reads(), [self.item(), self.item(), self.user()]);
        let (mut tries, env) = (0, self.env.clone());
        let outcome = env.transact(|tx| {
            if tries > 0 {
                let by = format!("{name}.{tries}");
                self.note_outcome(by, Err(conflict()));
            }
            tries += 1;
            let by = format!("{name}.{tries}");
            let mut reads = Reads { each: ask(tx, &questions)?, ..begun.clone() };
            let writes = decide(&reads, &targets, &by, &mut self.dice);
            let contradiction = write(tx, &writes, &by)?;
            self.end_reads(&mut reads);
            if let Some(what) = contradiction {
                self.recorder.note(&Line::Contradiction { what });
            }
            self.recorder.note(&Line::Attempt { by, reads, writes });
            Ok::<_, Error>(())
        });
        if tries > 0 {
            self.note_outcome(format!("{name}.{tries}"), outcome.map(|()| Vec::new()));
        }
    }

    /// Reads only, all from one view.
    pub(crate) fn view(&mut self) {
        let questions = self.questions();
        let mut reads = self.begin_reads();
        let asked = self.env.begin().and_then(|mut tx| {
            reads.each = ask(&mut tx, &questions)?;
            // The same view gives the same again.
            let again = ask(&mut tx, &questions)?;
            tx.commit().map(|_| again == reads.each)
        });
        self.end_reads(&mut reads);
        match asked {
            Ok(true) => self.recorder.note(&Line::Viewed { reads }),
            Ok(false) => {
                let what = format!("one view, two answers: {reads:?}");
                self.recorder.note(&Line::Contradiction { what });
            }
            Err(Error::ViewExpired { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn questions(&mut self) -> Vec<Question> {
        let mut questions = Vec::new();
        for _ in 0..1 + self.dice.roll(3) {
            questions.push(match self.dice.roll(6) {
                0..2 => Question::Key("Item", self.item()),
                2 => Question::Key("User", self.user()),
                3 => Question::Key("Lease", self.lease()),
                4 => {
                    let limit = self.dice.once_in(2).then(|| 1 + self.dice.roll(4) as usize);
                    Question::Prefix("Item", format!("i-{}-", self.dice.roll(4)), limit)
                }
                _ => Question::Prefix("User", format!("u-{}-", self.dice.roll(2)), None),
            });
        }
        questions
    }
}

fn ask(tx: &mut Transaction, questions: &[Question]) -> Result<Vec<Read>, Error> {
    let mut reads = Vec::new();
    for question in questions {
        reads.push(match question {
            Question::Key(of, key) => {
                let found = tx.get(of, key)?;
                let found = found.map(|value| Found { key: key.clone(), version: None, value });
                Read::Key { of: (*of).into(), key: key.clone(), found }
            }
            Question::Prefix(of, prefix, limit) => {
                let range = KeyRange::prefix(prefix.as_str());
                let range = if let Some(limit) = limit { range.limit(*limit) } else { range };
                let found = tx.range(of, &range)?.iter().map(Found::from).collect();
                let (of, prefix) = ((*of).into(), prefix.clone());
                Read::Prefix { of, prefix, limit: *limit, found }
            }
        });
    }
    Ok(reads)
}

/// Writes whose content depends on everything that was read.
fn decide(reads: &Reads, targets: &[String; 3], by: &str, dice: &mut Dice) -> Vec<Planned> {
    let found = reads.each.iter().flat_map(|read| match read {
        Read::Key { of, found, .. } => found.iter().map(|one| (of, one)).collect::<Vec<_>>(),
        Read::Prefix { of, found, .. } | Read::Field { of, found, .. } => {
            found.iter().map(|one| (of, one)).collect()
        }
    });
    let found: Vec<_> = found.collect();
    let sum: i64 = found.iter().filter_map(|(_, one)| one.value["n"].as_i64()).sum();
    let value = |n: i64| json!({"by": by, "n": n % 1_000_000, "group": n.rem_euclid(4)});
    let put = |key: &String, n: i64| Planned::Put {
        of: "Item".into(),
        key: key.clone(),
        value: value(n),
        ttl_ms: None,
        how: How::Put,
    };
    let mut writes = vec![put(&targets[0], sum + 1)];
    if dice.once_in(2) {
        writes.push(put(&targets[1], sum + found.len() as i64));
    }
    let of_items = found.iter().find(|(of, one)| *of == "Item" && !targets.contains(&one.key));
    if let Some((of, one)) = of_items {
        let (of, key) = ((*of).clone(), one.key.clone());
        let removes = dice.once_in(4);
        writes.push(if removes {
            Planned::Remove { of, key }
        } else {
            Planned::Add { of, key, n: 1 }
        });
    }
    if dice.once_in(4) {
        let name = format!("n{}", sum.rem_euclid(14));
        let value = json!({"by": by, "n": sum, "name": name});
        let (of, key) = ("User".into(), targets[2].clone());
        writes.push(Planned::Put { of, key, value, ttl_ms: None, how: How::Put });
    }
    writes
}

/// Writes, and reads it again: whether it is not what was written.
fn write(tx: &mut Transaction, writes: &[Planned], by: &str) -> Result<Option<String>, Error> {
    for planned in writes {
        let (of, key) = planned.at();
        let expected = match planned {
            Planned::Put { value, .. } => {
                tx.put(of, key, value.clone());
                Some(value.clone())
            }
            Planned::Add { n, .. } => {
                let before = tx.get(of, key)?;
                tx.patch(of, key, patch(by, *n))?;
                before.map(|before| added(before, by, *n))
            }
            Planned::Remove { .. } => {
                tx.remove(of, key)?;
                None
            }
        };
        let after = tx.get(of, key)?;
        if after != expected {
            return Ok(Some(format!("{by} wrote {expected:?} and read {after:?}")));
        }
    }
    Ok(None)
}

/// What `transact` met before it ran its function again.
fn conflict() -> Error {
    Error::Conflict { type_name: String::new(), key: String::new() }
}
