//! A filter as a tree of conditions, and what they accept.

use core::cmp::Ordering;

use serde_json::Value;

use super::pattern::Pattern;
use crate::value::{Class, Path, compare, equal, remainder};

/// Conditions and how they are combined.
#[derive(Clone, Debug)]
pub(super) enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Test(Subject, Test),
}

/// What a test looks at.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// The values at a path.
    Field(Path),
    /// An array's element, and nothing inside it.
    Element,
}

/// What one value is asked. Negations are [nodes](Node::Not), so that they negate the answer for
/// all values of a field.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Equals(Value),
    /// The values are in order, so that the one that equals is found by bisection.
    IsIn(Vec<Value>),
    Compares(Comparison, Value),
    IsOf(Vec<Class>),
    Contains(Pattern),
    Leaves {
        divisor: i64,
        remainder: i64,
    },
    Exists,
    HasLength(u64),
    HasElement(Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Node {
    pub(super) fn matches(&self, value: &Value) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.matches(value)),
            Self::Any(nodes) => nodes.iter().any(|node| node.matches(value)),
            Self::Not(node) => !node.matches(value),
            Self::Test(Subject::Field(path), test) => test.accepts_field(path, value),
            Self::Test(Subject::Element, test) => test.accepts(Some(value)),
        }
    }

    pub(super) fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }
}

impl Test {
    fn accepts_field(&self, path: &Path, document: &Value) -> bool {
        let accepts = |value: Option<&Value>| self.accepts(value);
        match self {
            Self::Exists | Self::HasLength(_) | Self::HasElement(_) => path.any(document, accepts),
            _ => path.any_candidate(document, accepts),
        }
    }

    fn accepts(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Equals(operand) => equal(value.unwrap_or(&Value::Null), operand),
            Self::IsIn(operands) => is_in(value.unwrap_or(&Value::Null), operands),
            Self::Compares(comparison, operand) => {
                comparison.holds(value.unwrap_or(&Value::Null), operand)
            }
            _ => value.is_some_and(|value| self.accepts_present(value)),
        }
    }

    /// The tests that nothing absent passes.
    fn accepts_present(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Exists, _) => true,
            (Self::IsOf(classes), _) => classes.contains(&Class::of(value)),
            (Self::Contains(pattern), Value::String(text)) => pattern.is_in(text),
            (Self::Leaves { divisor, remainder: left }, Value::Number(number)) => {
                remainder(number, *divisor) == Some(*left)
            }
            (Self::HasLength(length), Value::Array(elements)) => elements.len() as u64 == *length,
            (Self::HasElement(node), Value::Array(elements)) => {
                elements.iter().any(|element| node.matches(element))
            }
            _ => false,
        }
    }
}

impl Comparison {
    fn holds(self, value: &Value, operand: &Value) -> bool {
        Class::of(value) == Class::of(operand) && self.allows(compare(value, operand))
    }

    const fn allows(self, order: Ordering) -> bool {
        match self {
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
        }
    }
}

fn is_in(value: &Value, operands: &[Value]) -> bool {
    operands.binary_search_by(|operand| compare(operand, value)).is_ok()
}
