//! The cell protocol under every interleaving of a few threads, up to a bounded number of
//! preemptions: `RUSTFLAGS="--cfg loom" cargo test -p tidegate-store --test loom --release`.
//!
//! Where one thread locks and another only looks, the one that locks is the main thread, which loom
//! lets run first: a lock loads its word before it swaps it, and in a run where that load follows a
//! look, loom finds nothing between the two to try in another order.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tidegate_store::memory::cells::{Cells, Closed, Hash, Place};

const A: Hash = Hash::new(7);
const B: Hash = Hash::new(8);

/// Runs `test` under every interleaving with at most four preemptions.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(test);
}

/// Finds a key's cell, or makes it, as a bank does.
fn find_or_make(cells: &Cells, hash: Hash) -> Result<(usize, bool), Closed> {
    loop {
        match cells.find(hash, |_| true)? {
            Place::Found(index) => return Ok((index, false)),
            Place::Free(index) if cells.claim(index, hash) => return Ok((index, true)),
            Place::Free(_) => {}
            Place::Full => panic!("there is room for four"),
        }
    }
}

/// Two cells with keys, the first four of a table.
fn two_cells() -> (Arc<Cells>, usize, usize) {
    let cells = Arc::new(Cells::new(4));
    let (a, _) = find_or_make(&cells, A).unwrap();
    let (b, _) = find_or_make(&cells, B).unwrap();
    (cells, a, b)
}

/// Takes one unit of each cell that has room for one only, or of none; `look` first asks without a
/// lock.
fn take_both(cells: &Cells, a: usize, b: usize, look: bool) -> bool {
    if look && (cells.cell(a).read().unwrap() > 0 || cells.cell(b).read().unwrap() > 0) {
        return false;
    }
    let mut first = cells.cell(a).lock().unwrap();
    let mut second = cells.cell(b).lock().unwrap();
    if first.word() > 0 || second.word() > 0 {
        return false;
    }
    first.set(first.word() + 1);
    second.set(second.word() + 1);
    true
}

/// Of two batches over the same two counters with room for one, one passes and takes both; who is
/// refused leaves both alone. A refusal by a look is right: in the end both are taken.
#[test]
fn two_cells_are_taken_both_or_not_at_all() {
    for look in [false, true] {
        explore(move || {
            let (cells, a, b) = two_cells();
            let other = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || take_both(&cells, a, b, look))
            };
            let one = take_both(&cells, a, b, look);
            let other = other.join().unwrap();
            assert!(one != other, "one of two passes");
            assert_eq!((cells.cell(a).read(), cells.cell(b).read()), (Ok(1), Ok(1)));
        });
    }
}

/// The same for batches that lock only what still is as they judged it, and set the last at once.
#[test]
fn two_cells_are_taken_as_they_were_judged() {
    explore(|| {
        let (cells, a, b) = two_cells();
        let take = move |cells: &Cells| -> Option<()> {
            let (one, two) = (cells.cell(a).read().unwrap(), cells.cell(b).read().unwrap());
            let mut first = cells.cell(a).lock_if(one)?;
            if !cells.cell(b).set_if(two, two + 1) {
                return None;
            }
            assert_eq!(one, two, "judged at one instant");
            first.set(one + 1);
            Some(())
        };
        let other = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || take(&cells).is_some())
        };
        let one = take(&cells).is_some();
        let taken = u64::from(one) + u64::from(other.join().unwrap());
        assert!(taken > 0, "one of two is never in the other's way");
        assert_eq!((cells.cell(a).read(), cells.cell(b).read()), (Ok(taken), Ok(taken)));
    });
}

/// What is read without a lock is committed, and never older than what was read before. A pair of
/// words that both still stand is a pair that stood at one instant.
#[test]
fn looks_see_what_is_committed() {
    looks_see(false);
    looks_see(true);
}

/// Of a batch that locks both cells, or sets the last at once.
fn looks_see(last_at_once: bool) {
    explore(move || {
        let (cells, a, b) = two_cells();
        let reader = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                let (one, two) = (cells.cell(a).read().unwrap(), cells.cell(b).read().unwrap());
                if cells.cell(a).is_still(one) && cells.cell(b).is_still(two) {
                    assert_eq!(one, two, "both before the batch or both after it");
                }
                assert!(cells.cell(a).read().unwrap() >= one, "a counter does not go back");
                // Who has seen the batch at one cell sees it at the other, or that it is held.
                if one == 1 {
                    let (two, is_held) = cells.cell(b).look().unwrap();
                    assert!(two == 1 || is_held);
                    assert!(!take_both(&cells, a, b, false));
                }
                if two == 1 {
                    let (one, is_held) = cells.cell(a).look().unwrap();
                    assert!(one == 1 || is_held);
                }
            })
        };
        {
            let mut first = cells.cell(a).lock().unwrap();
            if last_at_once {
                assert!(cells.cell(b).set_if(0, 1));
            } else {
                cells.cell(b).lock().unwrap().set(1);
            }
            first.set(1);
        }
        reader.join().unwrap();
        assert_eq!((cells.cell(a).read(), cells.cell(b).read()), (Ok(1), Ok(1)));
    });
}

/// A state of three numbers is read whole, and with its own version.
#[test]
fn a_wide_state_is_never_torn() {
    explore(|| {
        let cells = Arc::new(Cells::new(4));
        let numbers: Arc<[AtomicU64; 3]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let (index, _) = find_or_make(&cells, A).unwrap();
        let read = move |cells: &Cells, numbers: &[AtomicU64; 3]| {
            let look = || numbers.each_ref().map(|number| number.load(Ordering::Relaxed));
            let (version, seen) = cells.cell(index).read_wide(look).unwrap();
            assert_eq!(seen, [version; 3]);
            version
        };
        let reader = {
            let (cells, numbers) = (Arc::clone(&cells), Arc::clone(&numbers));
            thread::spawn(move || read(&cells, &numbers))
        };
        for _ in 0..2 {
            let mut held = cells.cell(index).lock().unwrap();
            let version = held.word() + 1;
            for number in numbers.iter() {
                number.store(version, Ordering::Relaxed);
            }
            held.set(version);
        }
        assert!(reader.join().unwrap() <= 2);
        assert_eq!(read(&cells, &numbers), 2);
    });
}

/// Who locks a cell sees what was written under its lock before.
#[test]
fn wide_states_written_in_turn_add_up() {
    explore(|| {
        let cells = Arc::new(Cells::new(4));
        let numbers: Arc<[AtomicU64; 2]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let (index, _) = find_or_make(&cells, A).unwrap();
        let add = move |cells: &Cells, numbers: &[AtomicU64; 2]| {
            let mut held = cells.cell(index).lock().unwrap();
            for number in numbers {
                let seen = number.load(Ordering::Relaxed);
                assert_eq!(seen, held.word(), "the state of this version");
                number.store(seen + 1, Ordering::Relaxed);
            }
            held.set(held.word() + 1);
        };
        let other = {
            let (cells, numbers) = (Arc::clone(&cells), Arc::clone(&numbers));
            thread::spawn(move || add(&cells, &numbers))
        };
        add(&cells, &numbers);
        other.join().unwrap();
        assert_eq!(numbers.each_ref().map(|number| number.load(Ordering::Relaxed)), [2, 2]);
    });
}

/// Two threads that make the same key's cell make one.
#[test]
fn a_key_is_made_once() {
    explore(|| {
        let cells = Arc::new(Cells::new(4));
        let other = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || find_or_make(&cells, A).unwrap())
        };
        let (index, made) = find_or_make(&cells, A).unwrap();
        let (other_index, other_made) = other.join().unwrap();
        assert_eq!(index, other_index);
        assert!(made != other_made, "one of them made it");
        assert_eq!(cells.keys().count(), 1);
    });
}

/// Two threads that make two keys' cells make two.
#[test]
fn two_keys_are_made_apart() {
    explore(|| {
        let cells = Arc::new(Cells::new(4));
        let other = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || find_or_make(&cells, A).unwrap())
        };
        let (index, made) = find_or_make(&cells, B).unwrap();
        let (other_index, other_made) = other.join().unwrap();
        assert!(index != other_index && made && other_made);
        assert_eq!(cells.find(A, |_| true), Ok(Place::Found(other_index)));
        assert_eq!(cells.find(B, |_| true), Ok(Place::Found(index)));
    });
}

/// A table is closed while a key is made in it and taken from: what was committed is moved, and who
/// was not in time is told so.
#[test]
fn closing_loses_nothing_that_was_committed() {
    explore(|| {
        let cells = Arc::new(Cells::new(4));
        let taker = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || -> Result<(), Closed> {
                let (index, _) = find_or_make(&cells, A)?;
                let mut held = cells.cell(index).lock()?;
                held.set(held.word() + 1);
                Ok(())
            })
        };
        let mut moved = Vec::new();
        cells.close(|_, hash, word| moved.push((hash, word)));
        match taker.join().unwrap() {
            Ok(()) => assert_eq!(moved, [(A, 1)], "committed, so moved"),
            Err(Closed) => assert!(moved.is_empty() || moved == [(A, 0)], "not committed, so not counted"),
        }
        assert_eq!(cells.find(A, |_| true).map(|_| ()), if moved.is_empty() { Err(Closed) } else { Ok(()) });
        assert!(cells.find(B, |_| true).is_err() || !moved.is_empty());
    });
}

/// A table is closed while a batch holds one of its cells and wants the next: the batch takes both
/// or none.
#[test]
fn closing_and_a_batch_are_one_after_the_other() {
    explore(|| {
        let (cells, a, b) = two_cells();
        let taker = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || -> Result<(), Closed> {
                let mut first = cells.cell(a).lock()?;
                let mut second = cells.cell(b).lock()?;
                first.set(1);
                second.set(1);
                Ok(())
            })
        };
        let mut words = Vec::new();
        cells.close(|_, _, word| words.push(word));
        let expected = if taker.join().unwrap().is_ok() { [1, 1] } else { [0, 0] };
        assert_eq!(words, expected);
        assert_eq!(cells.cell(a).read(), Err(Closed));
        assert!(cells.cell(b).lock().is_err());
    });
}

/// A wide state is read while its table is closed: whole, or not at all.
#[test]
fn closing_and_a_wide_look_are_one_after_the_other() {
    explore(|| {
        let cells = Arc::new(Cells::new(4));
        let numbers: Arc<[AtomicU64; 2]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let (index, _) = find_or_make(&cells, A).unwrap();
        let read = move |cells: &Cells, numbers: &[AtomicU64; 2]| {
            let look = || numbers.each_ref().map(|number| number.load(Ordering::Relaxed));
            cells.cell(index).read_wide(look).map(|(version, seen)| assert_eq!(seen, [version; 2]))
        };
        let reader = {
            let (cells, numbers) = (Arc::clone(&cells), Arc::clone(&numbers));
            thread::spawn(move || read(&cells, &numbers))
        };
        let mut held = cells.cell(index).lock().unwrap();
        for number in numbers.iter() {
            number.store(1, Ordering::Relaxed);
        }
        held.set(1);
        drop(held);
        cells.close(|_, _, word| assert_eq!(word, 1));
        let _: Result<(), Closed> = reader.join().unwrap();
        assert_eq!(read(&cells, &numbers), Err(Closed));
    });
}
