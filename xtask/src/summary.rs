//! Reading the closing lines of test runners.

use std::sync::LazyLock;

use regex::Regex;

/// How many tests of a run passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    pub(crate) const PASSED: Self = Self { passed: 1, failed: 0 };
    pub(crate) const FAILED: Self = Self { passed: 0, failed: 1 };

    pub(crate) fn add(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

/// Whose closing line it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runner {
    /// `Summary [ 1.2s] 10 tests run: 8 passed, 2 failed, 0 skipped`
    Nextest,
    /// `test result: ok. 3 passed; 0 failed; ...`, once per test binary
    Libtest,
    /// `# pass 3` and `# fail 0` (or with an information sign instead of `#`)
    NodeTest,
    /// `sim: 20000 seeds, 0 violations, ...`: one check, or as many failures as violations
    Simulator,
    /// No closing line: the exit code is the one check.
    ExitCode,
}

impl Runner {
    /// The counts of a run. A runner that failed, or that ran nothing, is itself a failure.
    pub(crate) fn counts(self, output: &str, success: bool) -> Counts {
        let counts = self.read(output).unwrap_or_default();
        let ran_nothing = counts == Counts::default();
        if ran_nothing || (!success && counts.failed == 0) {
            return counts.add(Counts::FAILED);
        }
        counts
    }

    fn read(self, output: &str) -> Option<Counts> {
        match self {
            Self::Nextest => {
                let line =
                    output.lines().rfind(|line| line.trim_start().starts_with("Summary ["))?;
                let failed = ["failed", "timed out", "exec failed"].map(|what| number(line, what));
                Some(Counts { passed: number(line, "passed"), failed: failed.iter().sum() })
            }
            Self::Libtest => {
                let lines = output.lines().filter(|line| line.starts_with("test result: "));
                lines.map(pair).reduce(Counts::add)
            }
            Self::NodeTest => Some(Counts {
                passed: node_total(output, "pass")?,
                failed: node_total(output, "fail")? + node_total(output, "cancelled")?,
            }),
            Self::Simulator => {
                let line = output.lines().rfind(|line| line.starts_with("sim: "))?;
                let clean = line.contains(" 0 violations") && number(line, "seeds") > 0;
                let failed = number(line, "violations");
                Some(if clean { Counts::PASSED } else { Counts { passed: 0, failed } })
            }
            // With success the run counts as one; without, `counts` adds the failure.
            Self::ExitCode => Some(Counts { passed: 1, failed: 0 }),
        }
    }
}

fn pair(line: &str) -> Counts {
    Counts { passed: number(line, "passed"), failed: number(line, "failed") }
}

/// The number that stands before `what`, alone between separators; zero where there is none.
fn number(line: &str, what: &str) -> u64 {
    static PARTS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(\d+) ([a-z][a-z ]*[a-z])").expect("the pattern is valid"));
    let mut parts = PARTS.captures_iter(line).map(|part| part.extract::<2>().1);
    parts.find(|[_, name]| *name == what).and_then(|[digits, _]| digits.parse().ok()).unwrap_or(0)
}

/// The sum over all runs of node:test in the output.
fn node_total(output: &str, what: &str) -> Option<u64> {
    let lines = output.lines().filter_map(|line| {
        let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("\u{2139} "))?;
        rest.strip_prefix(what)?.trim().parse::<u64>().ok()
    });
    lines.reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_totals_include_timed_out_tests() {
        let output = "  Summary [   0.5s] 12 tests run: 9 passed (1 slow), 2 failed, 1 timed out, \
                      3 skipped\n        FAIL [ 0.1s] crate tests::one\n";
        assert_eq!(Runner::Nextest.counts(output, false), Counts { passed: 9, failed: 3 });
    }

    #[test]
    fn libtest_totals_are_added_up_over_binaries() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored\n\
                      test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        assert_eq!(Runner::Libtest.counts(output, false), Counts { passed: 4, failed: 2 });
    }

    #[test]
    fn node_totals_are_read_from_both_reporters() {
        let spec = "\u{2139} tests 5\n\u{2139} pass 4\n\u{2139} fail 1\n\u{2139} cancelled 0\n";
        let tap = "# tests 2\n# pass 1\n# fail 0\n# cancelled 1\n";
        assert_eq!(Runner::NodeTest.counts(spec, false), Counts { passed: 4, failed: 1 });
        assert_eq!(Runner::NodeTest.counts(tap, false), Counts { passed: 1, failed: 1 });
    }

    #[test]
    fn the_simulator_is_one_check_and_each_violation_a_failure() {
        let clean = "sim: 20000 seeds, 0 violations, 4312000 steps\n";
        let broken = "sim: 20000 seeds, 7 violations, 4312000 steps\n";
        assert_eq!(Runner::Simulator.counts(clean, true), Counts::PASSED);
        assert_eq!(Runner::Simulator.counts(broken, false), Counts { passed: 0, failed: 7 });
    }

    #[test]
    fn a_runner_without_a_closing_line_has_failed() {
        for runner in [Runner::Nextest, Runner::Libtest, Runner::NodeTest, Runner::Simulator] {
            assert_eq!(runner.counts("nothing to read", true), Counts::FAILED, "{runner:?}");
        }
    }

    #[test]
    fn a_runner_that_ran_no_test_has_failed() {
        let output = "Summary [ 0.0s] 0 tests run: 0 passed, 0 skipped\n";
        assert_eq!(Runner::Nextest.counts(output, true), Counts::FAILED);
    }

    #[test]
    fn a_runner_that_counts_no_failure_but_exits_with_one_has_failed() {
        let output = "Summary [ 0.0s] 3 tests run: 3 passed, 0 skipped\n";
        assert_eq!(Runner::Nextest.counts(output, false), Counts { passed: 3, failed: 1 });
        assert_eq!(Runner::ExitCode.counts("", false).failed, 1);
    }
}
