//! What a process did to the files of a store, in the order in which the system was asked.
//!
//! The words are those of `strace -f -y -xx`: one line per call, or two where another thread's call
//! came in between; strings and paths as hexadecimal escapes.

use std::collections::HashMap;

/// One step of the process.
#[derive(Debug)]
pub(crate) enum Event {
    /// A write was begun.
    Write { file: usize, at: usize, bytes: Vec<u8> },
    /// A file was given a length.
    Length { file: usize, bytes: usize },
    /// The write of an earlier event, by a descriptor that syncs each, has ended.
    Settled { write: usize },
    /// A sync that was begun at an earlier event has ended.
    Sync { file: usize, since: usize },
    /// A line of output.
    Said(String),
}

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) events: Vec<Event>,
    /// The files, by their place in this list; paths within the traced directory.
    pub(crate) files: Vec<String>,
    /// The files that were mapped so that writing to memory changes them.
    pub(crate) mapped_writable: Vec<String>,
}

impl Trace {
    /// Reads what `strace` wrote of a process that worked in this directory.
    pub(crate) fn parse(text: &str, directory: &str) -> Self {
        let mut reader = Reader { directory, trace: Self::default(), ..Reader::default() };
        text.lines().for_each(|line| reader.line(line));
        assert!(reader.begun.is_empty(), "calls that did not end: {:?}", reader.begun.len());
        reader.trace
    }

    pub(crate) fn syncs(&self) -> usize {
        let is_sync = |event: &&Event| matches!(event, Event::Sync { .. } | Event::Settled { .. });
        self.events.iter().filter(is_sync).count()
    }

    /// Whether what is said after this event has been said: the strictest moment for a cut.
    pub(crate) fn is_last_before_a_change(&self, moment: usize) -> bool {
        self.events.get(moment + 1).is_none_or(|next| !matches!(next, Event::Said(_)))
    }
}

#[derive(Default)]
struct Reader<'t> {
    directory: &'t str,
    trace: Trace,
    /// Whether a descriptor syncs each write.
    syncing: HashMap<String, bool>,
    /// Where a descriptor stands, for writes that do not say where.
    places: HashMap<String, usize>,
    /// Calls that have begun, by thread.
    begun: HashMap<&'t str, (&'t str, Effect)>,
}

/// What the end of a call brings.
enum Effect {
    None,
    Written { write: usize, length: usize, syncs: bool },
    Synced { file: usize, since: usize },
    Opened { syncs: bool },
    Moved { descriptor: String },
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: &'t str) {
        let Some((thread, call)) = line.split_once(' ') else { return };
        let call = call.trim_start();
        if let Some(rest) = call.strip_prefix("<... ") {
            let (_, effect) = self.begun.remove(thread).expect("what is resumed was begun");
            self.end(effect, result_of(rest));
        } else if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            let (name, arguments) = begin.split_once('(').expect("a call");
            let effect = self.begin(name, arguments);
            self.begun.insert(thread, (name, effect));
        } else if let Some((name, arguments)) = call.split_once('(') {
            let failed = result_of(arguments).starts_with('-');
            let effect = if failed { Effect::None } else { self.begin(name, arguments) };
            self.end(effect, result_of(arguments));
        } else if call.starts_with("+++ exited") {
            self.begun.remove(thread);
        }
    }

    fn begin(&mut self, name: &str, arguments: &str) -> Effect {
        let since = self.trace.events.len();
        match name {
            "openat" => {
                let syncs = arguments.contains("O_DSYNC") || arguments.contains("O_SYNC");
                return Effect::Opened { syncs };
            }
            "write" | "writev" if arguments.starts_with("1<") => {
                let said = String::from_utf8_lossy(&strings(arguments).concat()).into_owned();
                self.trace.events.extend(said.lines().map(|line| Event::Said(line.into())));
                return Effect::None;
            }
            "fcntl" if arguments.contains("F_DUPFD") => {
                return Effect::Opened { syncs: self.syncs(arguments) };
            }
            _ => {}
        }
        let Some(file) = self.file(name, arguments) else { return Effect::None };
        match name {
            "lseek" => return Effect::Moved { descriptor: descriptor_of(arguments).into() },
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => {
                let bytes = strings(arguments).concat();
                let length = bytes.len();
                let at = match name {
                    "write" | "writev" => self.advance(arguments, length),
                    "pwritev2" => last_numbers(arguments, 2),
                    _ => last_numbers(arguments, 1),
                };
                self.trace.events.push(Event::Write { file, at, bytes });
                return Effect::Written { write: since, length, syncs: self.syncs(arguments) };
            }
            "ftruncate" => {
                let bytes = last_numbers(arguments, 1);
                self.trace.events.push(Event::Length { file, bytes });
            }
            "fdatasync" | "fsync" => return Effect::Synced { file, since },
            "mmap" if arguments.contains("PROT_WRITE") && arguments.contains("MAP_SHARED") => {
                self.trace.mapped_writable.push(self.trace.files[file].clone());
            }
            "mmap" | "close" | "fcntl" => {}
            // A file that is there keeps its length, and nothing but its room changes.
            "fallocate" if arguments.contains("FALLOC_FL_KEEP_SIZE") => {}
            other => panic!("{other} is not understood: {arguments}"),
        }
        Effect::None
    }

    fn end(&mut self, effect: Effect, result: &str) {
        match effect {
            Effect::None => {}
            Effect::Written { write, length, syncs } => {
                assert_eq!(result, length.to_string(), "a write was cut short");
                if syncs {
                    self.trace.events.push(Event::Settled { write });
                }
            }
            Effect::Synced { file, since } => {
                assert_eq!(result, "0", "a sync failed");
                self.trace.events.push(Event::Sync { file, since });
            }
            Effect::Opened { syncs } => {
                self.syncing.insert(result.to_owned(), syncs);
                self.places.remove(result);
            }
            Effect::Moved { descriptor } => {
                self.places.insert(descriptor, result.parse().expect("a place"));
            }
        }
    }

    /// Whether the descriptor that these arguments begin with syncs each write.
    fn syncs(&self, arguments: &str) -> bool {
        self.syncing.get(descriptor_of(arguments)).copied().unwrap_or(false)
    }

    /// Where the descriptor stands, which then stands so many bytes further.
    fn advance(&mut self, arguments: &str, bytes: usize) -> usize {
        let place = self.places.entry(descriptor_of(arguments).into()).or_default();
        *place += bytes;
        *place - bytes
    }

    /// The file of the directory that a call is about.
    fn file(&mut self, name: &str, arguments: &str) -> Option<usize> {
        let about = if name == "mmap" { arguments.split(", ").nth(4)? } else { arguments };
        let path = String::from_utf8(unescape(about.split_once('<')?.1.split('>').next()?)).ok()?;
        let within = path.strip_prefix(self.directory)?.strip_prefix('/')?;
        let files = &mut self.trace.files;
        let known = files.iter().position(|file| file == within);
        Some(known.unwrap_or_else(|| {
            files.push(within.into());
            files.len() - 1
        }))
    }
}

/// The descriptor that these arguments begin with.
fn descriptor_of(arguments: &str) -> &str {
    arguments.split('<').next().unwrap_or_default()
}

/// What a call returned, without the descriptor's path.
fn result_of(call: &str) -> &str {
    let result = call.rsplit_once(" = ").map_or("", |(_, result)| result);
    result.split(['<', ' ']).next().unwrap_or_default()
}

/// The strings among the arguments.
fn strings(arguments: &str) -> Vec<Vec<u8>> {
    arguments.split('"').skip(1).step_by(2).map(unescape).collect()
}

/// The number that is the last of the arguments but so many.
fn last_numbers(arguments: &str, place: usize) -> usize {
    let arguments = arguments.rsplit_once(") = ").map_or(arguments, |(arguments, _)| arguments);
    let number = arguments.rsplit(", ").nth(place - 1).expect("an argument");
    number.parse().expect("a number")
}

fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.split("\\x").skip(1);
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("a byte")).collect()
}
