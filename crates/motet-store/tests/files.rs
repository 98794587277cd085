//! Files that are not as they should be, and media that have no room.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(clippy::print_stdout, reason = "a case that is skipped says why")]
#![cfg(unix)]

mod engines;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use engines::{
    all, decider, get, logging, open, open_with, putting, removing, stored_head, try_get, until,
    view, write, write_all,
};
use motet_store::engine::lmdb::{Durability, Lmdb, Options};
use motet_store::engine::{Decision, Engine, Table, Writes};
use motet_store::{Clock, Error};

fn refusal(path: &Path) -> Error {
    match Lmdb::open(path, &Options::default()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

/// Names and contents of the files, with those below; of locks, which say who took them, the names.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path, Vec::new());
        } else {
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            let content = if is_lock { Vec::new() } else { fs::read(&path).unwrap() };
            found.insert(path, content);
        }
    }
    found
}

/// Asserts that the directory is refused like this, and is as it was.
fn is_refused_untouched(path: &Path, expected: impl Fn(&Error) -> bool) {
    let before = contents(path);
    let error = refusal(path);
    assert!(expected(&error), "{error:?}");
    assert!(contents(path) == before, "the refused directory was changed");
}

/// A store with some documents, closed.
fn store(path: &Path) {
    let engine = open(path);
    for number in 0..200_u32 {
        write(&engine, putting(number.to_be_bytes(), vec![7; 1_000])).unwrap();
    }
}

#[test]
fn what_was_written_is_there_when_the_store_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write_all(&engine, vec![putting("k", "v"), logging("1"), logging("2")]);
    let head = stored_head(&*view(&engine));
    drop(engine);
    let engine = open(dir.path());
    let again = view(&engine);
    assert_eq!(get(&*again, Table::Documents, b"k"), Some(b"v".to_vec()));
    assert_eq!(stored_head(&*again), head);
    assert_eq!(write(&engine, logging("3")).unwrap().clock, Clock::new(3));
    assert_eq!(all(&*view(&engine), Table::Log).len(), 3);
}

#[test]
fn a_path_that_is_opened_twice_is_one_engine() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let second = open(&dir.path().join(".").join("..").join(dir.path().file_name().unwrap()));
    write(&first, putting("k", "v")).unwrap();
    let kept = view(&second);
    drop((first, second));
    // The view keeps the engine open, and a third opening joins it.
    let third = open(dir.path());
    write(&third, putting("k", "w")).unwrap();
    assert_eq!(get(&*kept, Table::Documents, b"k"), Some(b"v".to_vec()));
    assert_eq!(get(&*view(&third), Table::Documents, b"k"), Some(b"w".to_vec()));
}

#[test]
fn threads_that_open_and_drop_one_path_share_its_engine_or_follow_each_other() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let path = dir.path();
            scope.spawn(move || {
                for round in 0..25_u8 {
                    let engine = open(path);
                    write(&engine, putting([thread, round], "")).unwrap();
                    assert!(get(&*view(&engine), Table::Documents, &[thread, round]).is_some());
                }
            });
        }
    });
    assert_eq!(all(&*view(&open(dir.path())), Table::Documents).len(), 200);
}

#[test]
fn a_view_is_of_use_after_a_reader_panicked() {
    let dir = tempfile::tempdir().unwrap();
    let view_max = Duration::from_millis(200);
    let engine = open_with(dir.path(), &Options { view_max, ..Options::default() });
    write(&engine, putting("k", "v")).unwrap();
    let view = view(&engine);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut each = |_, _: Option<&[u8]>| panic!("as it was told");
        pollster::block_on(view.get_many(Table::Documents, &[b"k"], &mut each))
    }));
    assert!(panicked.is_err());
    assert_eq!(get(&*view, Table::Documents, b"k"), Some(b"v".to_vec()));
    until("an expiry", 5, || try_get(&*view, Table::Documents, b"k").is_err());
}

#[test]
fn a_directory_with_other_files_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "not a store").unwrap();
    is_refused_untouched(dir.path(), |error| matches!(error, Error::NotAStore { .. }));
    let file = dir.path().join("notes.txt");
    assert!(matches!(refusal(&file), Error::NotAStore { .. }));
    assert_eq!(fs::read(file).unwrap(), b"not a store");
}

#[test]
fn a_data_file_without_a_format_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    fs::remove_file(dir.path().join("FORMAT")).unwrap();
    is_refused_untouched(dir.path(), |error| matches!(error, Error::NotAStore { .. }));
}

#[test]
fn a_format_of_something_else_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    for format in ["", "motet-store", "another-store 1\n", "motet-store one\n"] {
        fs::write(dir.path().join("FORMAT"), format).unwrap();
        is_refused_untouched(dir.path(), |error| matches!(error, Error::NotAStore { .. }));
    }
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    fs::write(dir.path().join("FORMAT"), "motet-store 2\n").unwrap();
    is_refused_untouched(dir.path(), |error| {
        matches!(error, Error::StoreNewer { found: 2, known: 1 })
    });
}

#[test]
fn a_data_file_that_was_cut_short_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let data = dir.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let corrupt = |error: &Error| matches!(error, Error::Corrupt { .. });
    for bytes in [0, 100, 4_096, 8_192, 8_193, whole.len() / 2, whole.len() - 4_096] {
        fs::write(&data, &whole[..bytes]).unwrap();
        is_refused_untouched(dir.path(), corrupt);
    }
    fs::remove_file(&data).unwrap();
    is_refused_untouched(dir.path(), corrupt);
    fs::write(&data, &whole).unwrap();
    assert_eq!(all(&*view(&open(dir.path())), Table::Documents).len(), 200);
}

#[test]
fn free_pages_at_the_end_of_the_file_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for number in 0..200_u32 {
        write(&engine, putting(number.to_be_bytes(), vec![7; 1_000])).unwrap();
    }
    let pages = engine.file_bytes().unwrap() / 4_096;
    // A large value at the end of the file, freed again, and its pages not used for anything else.
    write(&engine, putting("large", vec![7; 1_000_000])).unwrap();
    write(&engine, removing("large")).unwrap();
    drop(engine);
    let data = OpenOptions::new().write(true).open(dir.path().join("data.mdb")).unwrap();
    let bytes = data.metadata().unwrap().len();
    assert!(bytes > pages * 4_096 + 1_000_000);
    // Where the two transactions put their other pages is LMDB's affair, so cut only as far as the
    // store opens at all; every such cut must leave all documents readable.
    let mut shortest = bytes;
    while shortest > 8_192 {
        data.set_len(shortest - 4_096).unwrap();
        match Lmdb::open(dir.path(), &Options::default()) {
            Ok(engine) => {
                assert_eq!(all(&*view(&engine), Table::Documents).len(), 200);
                shortest -= 4_096;
            }
            Err(error) => {
                assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
                break;
            }
        }
    }
    println!("{shortest} of {bytes} bytes suffice");
}

#[test]
fn a_garbled_data_file_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let data = dir.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let mut noise = whole.clone();
    for (place, byte) in noise.iter_mut().enumerate() {
        *byte = (place * 31 % 251) as u8;
    }
    let first_meta = {
        let mut damaged = whole.clone();
        damaged[16..24].fill(0xaa);
        damaged
    };
    let second_meta = {
        let mut damaged = whole.clone();
        damaged[4_096 + 16..4_096 + 24].fill(0xaa);
        damaged
    };
    let page_size = {
        let mut damaged = whole;
        damaged[40..44].copy_from_slice(&[0xff; 4]);
        damaged
    };
    for damaged in [noise, first_meta, second_meta, page_size] {
        fs::write(&data, damaged).unwrap();
        is_refused_untouched(dir.path(), |error| matches!(error, Error::Corrupt { .. }));
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_as_read_only() {
    let medium = match Tmpfs::mount("4m") {
        Ok(medium) => medium,
        Err(why) => {
            println!("skipped: no tmpfs can be mounted here ({why}), and root may write anywhere");
            return;
        }
    };
    let path = medium.path().join("store");
    store(&path);
    medium.remount("ro").unwrap();
    is_refused_untouched(&path, |error| matches!(error, Error::ReadOnly { .. }));
    let new = medium.path().join("new");
    assert!(matches!(refusal(&new), Error::ReadOnly { .. }));
    medium.remount("rw").unwrap();
    assert_eq!(all(&*view(&open(&path)), Table::Documents).len(), 200);
}

#[test]
fn files_of_another_user_are_refused_as_read_only() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path());
    let lock = dir.path().join("writer.lock");
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o444)).unwrap();
    if OpenOptions::new().write(true).open(&lock).is_ok() {
        println!("skipped: this user may write anywhere");
        return;
    }
    assert!(matches!(refusal(dir.path()), Error::ReadOnly { path } if path == lock));
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room_and_loses_nothing() {
    let medium = match Tmpfs::mount("2m") {
        Ok(medium) => medium,
        Err(why) => {
            println!("skipped: no tmpfs can be mounted here ({why})");
            return;
        }
    };
    let ballast = medium.path().join("ballast");
    fs::write(&ballast, vec![1; 600_000]).unwrap();
    let path = medium.path().join("store");
    let engine = open(&path);
    let fill = |engine: &Lmdb, from: u32| -> (u32, Error) {
        for number in from.. {
            if let Err(error) = write(engine, putting(number.to_be_bytes(), vec![7; 3_000])) {
                return (number, error);
            }
        }
        unreachable!("the disk is never full")
    };
    let (written, error) = fill(&engine, 0);
    assert!(matches!(error, Error::DiskFull), "{error:?}");
    assert!(written > 50, "{written}");
    let readable = |engine: &Lmdb, count: u32| {
        let view = view(engine);
        (0..count).all(|number| {
            get(&*view, Table::Documents, &number.to_be_bytes()) == Some(vec![7; 3_000])
        })
    };
    assert!(readable(&engine, written));
    // Views take their room in the table of readers when the store is opened.
    let views: Vec<_> = (0..200).map(|_| view(&engine)).collect();
    drop(views);
    fs::remove_file(&ballast).unwrap();
    let (more, error) = fill(&engine, written);
    assert!(matches!(error, Error::DiskFull), "{error:?}");
    assert!(more > written + 50, "{more} after {written}");
    drop(engine);
    let engine = open(&path);
    assert!(readable(&engine, more));
    assert_eq!(all(&*view(&engine), Table::Documents).len(), more as usize);
}

#[test]
fn a_store_on_a_full_disk_is_not_created_and_can_be_later() {
    let medium = match Tmpfs::mount("1m") {
        Ok(medium) => medium,
        Err(why) => {
            println!("skipped: no tmpfs can be mounted here ({why})");
            return;
        }
    };
    let ballast = medium.path().join("ballast");
    let file = File::create(&ballast).unwrap();
    let mut bytes = 0;
    while file.write_all_at(&[1; 4_096], bytes).is_ok() {
        bytes += 4_096;
    }
    drop(file);
    let path = medium.path().join("store");
    let error = refusal(&path);
    assert!(matches!(error, Error::DiskFull), "{error:?}");
    fs::remove_file(ballast).unwrap();
    write(&open(&path), putting("k", "v")).unwrap();
}

#[test]
fn a_store_that_is_full_takes_removals_and_has_room_again() {
    let dir = tempfile::tempdir().unwrap();
    let max_bytes = 1 << 20;
    let engine = open_with(dir.path(), &Options { max_bytes, ..Options::default() });
    let mut written = 0_u32;
    let error = loop {
        match write(&engine, putting(written.to_be_bytes(), vec![7; 1_000])) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    match error {
        Error::StoreFull { bytes, max } => {
            assert_eq!(max, max_bytes);
            assert!(bytes <= max && bytes > max * 9 / 10, "{bytes}");
        }
        other => panic!("{other:?}"),
    }
    assert!(engine.used_bytes().unwrap() <= max_bytes);
    let removal = decider(|transaction| {
        let mut writes = Writes::default();
        for number in 0..200_u32 {
            writes.remove(Table::Documents, &number.to_be_bytes());
        }
        let clock = transaction.head().clock.plus(1);
        writes.put(Table::Log, &clock.to_bytes(), b"200 removed");
        Ok(Decision { writes, changes: 1 })
    });
    write(&engine, removal).unwrap();
    for number in 0..100_u32 {
        write(&engine, putting(number.to_be_bytes(), vec![8; 1_000])).unwrap();
    }
    assert_eq!(all(&*view(&engine), Table::Documents).len(), written as usize - 100);
}

#[test]
fn a_copy_is_a_store_of_its_own_taken_at_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(&dir.path().join("store"));
    write_all(&engine, (0..500_u32).map(|n| putting(n.to_be_bytes(), vec![7; 2_000])).collect());
    write(&engine, logging("1")).unwrap();
    let copy = dir.path().join("copy");
    engine.copy_to(&copy).unwrap();
    write(&engine, putting("later", "")).unwrap();
    assert!(matches!(engine.copy_to(&copy), Err(Error::NotAStore { .. })));
    let copied = open(&copy);
    assert_eq!(all(&*view(&copied), Table::Documents).len(), 500);
    assert_eq!(stored_head(&*view(&copied)).clock, Clock::new(1));
    write(&copied, logging("2")).unwrap();
    assert_eq!(stored_head(&*view(&engine)).clock, Clock::new(1));
}

#[test]
fn a_view_that_is_kept_too_long_expires_and_lets_its_pages_go() {
    let dir = tempfile::tempdir().unwrap();
    let view_max = Duration::from_millis(100);
    let engine = open_with(dir.path(), &Options { view_max, ..Options::default() });
    write(&engine, putting("k", "v")).unwrap();
    let kept = view(&engine);
    assert!(get(&*kept, Table::Documents, b"k").is_some());
    until("an expiry", 5, || {
        matches!(try_get(&*kept, Table::Documents, b"k"), Err(Error::ViewExpired { max_ms: 100 }))
    });
    assert!(get(&*view(&engine), Table::Documents, b"k").is_some());
    drop(kept);
    assert!(get(&*view(&engine), Table::Documents, b"k").is_some());
}

#[test]
fn a_long_range_ends_when_its_view_is_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let view_max = Duration::from_millis(50);
    let engine = open_with(dir.path(), &Options { view_max, ..Options::default() });
    let many = (0..5_000_u32).map(|number| putting(number.to_be_bytes(), "")).collect();
    write_all(&engine, many);
    let view = view(&engine);
    let started = Instant::now();
    let mut seen = 0;
    let range = motet_store::engine::Range {
        table: Table::Documents,
        from: std::ops::Bound::Unbounded,
        to: std::ops::Bound::Unbounded,
        direction: motet_store::engine::Direction::Forward,
    };
    let read = pollster::block_on(view.range(range, &mut |_, _| {
        seen += 1;
        until("the age", 5, || seen > 1 || started.elapsed() > view_max * 2);
        std::ops::ControlFlow::Continue(())
    }));
    assert!(matches!(read, Err(Error::ViewExpired { .. })), "{read:?}");
    assert_eq!(seen, 1_023);
}

#[test]
fn more_views_than_there_are_slots_are_refused_until_one_ends() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open_with(dir.path(), &Options { max_readers: 20, ..Options::default() });
    let mut views = Vec::new();
    let error = loop {
        match pollster::block_on(engine.view()) {
            Ok(view) => views.push(view),
            Err(error) => break error,
        }
        assert!(views.len() < 200);
    };
    assert!(matches!(error, Error::ReadersFull { .. }), "{error:?}");
    assert!(views.len() >= 20);
    views.pop();
    assert!(pollster::block_on(engine.view()).is_ok());
}

#[test]
fn a_decider_that_panics_is_rejected_and_the_others_of_its_group_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let panics = decider(|_| panic!("as it was told"));
    let results = write_all(&engine, vec![putting("a", ""), panics, putting("b", "")]);
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    let message = match &results[1] {
        Err(Error::DeciderPanicked { message }) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(message, "as it was told");
    assert_eq!(all(&*view(&engine), Table::Documents).len(), 2);
}

#[test]
fn too_many_waiting_writes_are_refused_all_together() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let many = (0..65_537_u32).map(|number| putting(number.to_be_bytes(), "")).collect();
    let results = write_all(&engine, many);
    assert_eq!(results.len(), 65_537);
    assert!(results.iter().all(|result| matches!(result, Err(Error::WriteQueueFull { .. }))));
    assert_eq!(all(&*view(&engine), Table::Documents), []);
}

#[test]
fn a_decider_may_own_the_last_handle_of_its_engine() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..100_u32 {
        let engine = open(dir.path());
        let own = engine.clone();
        // Dropped after it was answered, by the engine's own thread, and often as the last one.
        let last = decider(move |_| {
            let _ = &own;
            let mut writes = Writes::default();
            writes.put(Table::Documents, &number.to_be_bytes(), b"");
            Ok(Decision { writes, changes: 0 })
        });
        write(&engine, last).unwrap();
    }
    assert_eq!(all(&*view(&open(dir.path())), Table::Documents).len(), 100);
}

#[test]
fn what_was_queued_is_written_before_the_engine_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let many = (0..1_000_u32).map(|number| putting(number.to_be_bytes(), "")).collect();
    drop(engine.write(many));
    drop(engine);
    assert_eq!(all(&*view(&open(dir.path())), Table::Documents).len(), 1_000);
}

#[test]
fn a_relaxed_store_keeps_what_was_written_over_a_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Relaxed, ..Options::default() };
    write(&open_with(dir.path(), &options), logging("1")).unwrap();
    assert_eq!(stored_head(&*view(&open(dir.path()))).clock, Clock::new(1));
}

/// A medium of a given size.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(size: &str) -> Result<Self, String> {
        let dir = tempfile::tempdir().unwrap();
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path()))?;
        Ok(Self(dir))
    }

    fn remount(&self, mode: &str) -> Result<(), String> {
        run(Command::new("mount").args(["-o", &format!("remount,{mode}")]).arg(self.path()))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily, for a test that failed may have files open.
        let _ = run(Command::new("umount").arg("--lazy").arg(self.path()));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
