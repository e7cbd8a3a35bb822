//! A finding as the rules make it, for those who act on it.

use std::fmt::Display;

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Caution, Estimate, Evidence, EvidenceList, Finding, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_model::response::Better;

use super::{caution, known};
use crate::verdicts::{FactorEffect, ScalePlateau};

/// A finding with what it is about and what was found.
pub(crate) struct Found<'d> {
    /// What it is about.
    pub(crate) about: About<'d>,
    /// What was found.
    pub(crate) what: What<'d>,
    /// The claim, one sentence with its numbers.
    pub(crate) claim: String,
    /// Why it is so, and what it means.
    pub(crate) explanation: String,
    /// The size of the effect.
    pub(crate) effect: Estimate,
    /// What it rests on.
    pub(crate) evidence: EvidenceList,
    /// What to do about it, where its evidence says so; without a full stop.
    pub(crate) action: Option<String>,
}

/// What a finding is about.
#[derive(Clone, Copy)]
pub(crate) enum About<'d> {
    /// An experiment.
    Experiment(&'d Experiment),
    /// The run as a whole.
    Run,
    /// A host, whatever was measured.
    Host,
}

/// What was found.
#[derive(PartialEq)]
pub(crate) enum What<'d> {
    /// What holds a number down.
    Limiter(Limiter),
    /// A level that gains, of the plateau with this number.
    Plateau(usize, &'d ScalePlateau, usize),
    /// What a factor changes.
    Effect(&'d FactorEffect),
    /// Lost datagrams.
    Loss,
    /// Connections that lie on queues less evenly than chance lays them.
    QueueBalance,
    /// That it matters where the two ends ran.
    Placement,
    /// Another reason to trust a number less; with the host or number that it is about, if it is about one.
    Caution(Caution, Option<String>),
}

impl<'d> Found<'d> {
    /// Returns a reason to trust a number less.
    pub(super) fn caution(
        about: About<'d>,
        caution: Caution,
        claim: String,
        explanation: impl Into<String>,
        evidence: Evidence,
    ) -> Self {
        debug_assert!(known::is_known(caution), "{caution:?} is in no reference");
        Self {
            about,
            what: What::Caution(caution, None),
            claim,
            explanation: explanation.into(),
            effect: evidence.estimate,
            evidence: EvidenceList::new(evidence, Vec::new()),
            action: None,
        }
    }

    /// Says which of several it is: a caution of one host, or by number.
    pub(super) fn named(mut self, name: impl Display) -> Self {
        if let What::Caution(_, of) = &mut self.what {
            *of = Some(name.to_string());
        }
        self
    }

    /// Returns it with more evidence.
    pub(super) fn with(self, more: impl IntoIterator<Item = Evidence>) -> Self {
        Self {
            evidence: self.evidence.with(more),
            ..self
        }
    }

    /// Returns whether it is the caution about workers that a quota held back.
    pub(crate) fn is_of_quota(&self) -> bool {
        matches!(&self.what, What::Caution(Caution::Starved, Some(name)) if name == caution::OF_QUOTA)
    }

    /// Returns whether another congestion control than `own`, which the hosts have, is shown to do better.
    pub(super) fn is_lever(&self, own: Option<&str>) -> bool {
        let What::Effect(effect) = self.what else {
            return false;
        };
        let over = own.map(|own| Level::Word(own.to_owned()));
        let better = Better::of(&effect.response);
        effect.factor == Factor::Congestion
            && over.is_some_and(|own| effect.levels.1 == own)
            && better.is_some_and(|better| better.is_gain(self.effect.value))
    }

    /// Returns whether it is about `experiment`.
    pub(crate) fn is_about(&self, experiment: &Experiment) -> bool {
        matches!(self.about, About::Experiment(own) if own.name == experiment.name)
    }

    /// Returns whether a chapter of the study brings about what was found. An experiment of the user's has the
    /// traffic that the user meant.
    pub(crate) fn is_own_doing(&self) -> bool {
        let of_chapter = matches!(self.about, About::Experiment(one) if one.chapter.is_some());
        of_chapter && self.kind().is_of_traffic()
    }

    /// Returns its identifier inside a report.
    pub(crate) fn id(&self) -> String {
        let what = match &self.what {
            What::Limiter(limiter) => format!("limiter/{}", limiter.id()),
            What::Plateau(number, ..) => format!("plateau/{number}"),
            What::Effect(effect) => format!("effect/{}", effect.factor.name()),
            What::Loss => "loss".to_owned(),
            What::QueueBalance => "queue-balance".to_owned(),
            What::Placement => "placement".to_owned(),
            What::Caution(caution, None) => format!("caution/{}", caution.id()),
            What::Caution(caution, Some(name)) => format!("caution/{}/{name}", caution.id()),
        };
        match self.about {
            About::Experiment(experiment) => format!("{}/{what}", experiment.name),
            About::Run => format!("run/{what}"),
            About::Host => what,
        }
    }

    /// Returns its kind.
    pub(crate) fn kind(&self) -> FindingKind {
        match self.what {
            What::Limiter(limiter) => FindingKind::Limiter(limiter),
            What::Plateau(..) => FindingKind::Plateau,
            What::Effect(_) | What::QueueBalance => FindingKind::Effect,
            What::Loss => FindingKind::Loss,
            What::Placement | What::Caution(..) => FindingKind::Caution,
        }
    }

    /// Returns the finding as a report has it.
    pub(crate) fn finding(self) -> Finding {
        let experiment = match self.about {
            About::Experiment(experiment) => Some(experiment),
            About::Run | About::Host => None,
        };
        Finding {
            id: self.id(),
            experiment: experiment.map(|experiment| experiment.name.clone()),
            from: None,
            caution: match self.what {
                What::Caution(caution, _) => Some(caution),
                _ => None,
            },
            chapter: experiment.and_then(|experiment| experiment.chapter),
            kind: self.kind(),
            claim: self.claim,
            explanation: self.explanation,
            effect: self.effect,
            evidence: self.evidence,
            action: self.action,
        }
    }
}
