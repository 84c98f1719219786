//! Messages with holes, into which what is asked of the tools is put.
//!
//! `{list}` is all that is asked. `{a}` is what is asked of our tool, in any form (a question, an order, a thing), so it
//! stands behind a colon or in quotation marks; `{A}` is the same as a thing, as are `{b}`, `{c}` and `{d}` of other
//! tools. `{topic}` is what our tool is about. The numbers of frames have no divisor in common with the size of a batch or the
//! number of combinations, so that going on from slot to slot comes to each of them. Frames of one list have few words
//! in common: two messages with the same tools still have to differ.

/// All tools are needed.
pub(super) const TOGETHER: [&str; 19] = [
    "I have a meeting in ten minutes and need this: {list}. One short summary, please.",
    "Please take care of these errands for me: {list}. Reply once all of them are finished.",
    "For my notes, write everything into a single paragraph: {list}.",
    "My manager keeps asking: {list}. What should I tell her?",
    "Let's go through today's checklist: {list}. Leave nothing out.",
    "Compare what you find and report back: {list}.",
    "I am preparing a handover document. These chapters are missing: {list}.",
    "Before lunch I would like to settle a few matters: {list}.",
    "Can you put a briefing together? Its sections: {list}.",
    "Someone new joins our group and wonders: {list}. Bring them up to speed.",
    "Several questions at once, sorry: {list}. Brief replies are enough.",
    "Help me plan the rest of my week. It all depends on the following: {list}.",
    "A caller is waiting on the line: {list}. Give every outcome in plain sentences.",
    "I lost track during the holidays. Catch me up: {list}.",
    "Draft an email that explains these points: {list}. Real values, no placeholders.",
    "Our status page is due tonight; visitors expect to see: {list}. Collect its content.",
    "Walk through this step by step: {list}. Finish with a conclusion.",
    "I promised a friend the full picture: {list}.",
    "Think of it as one big job: {list}. Tie the ends together afterwards.",
];

/// Either tool alone suffices.
pub(super) const EITHER: [&str; 13] = [
    "Either is fine with me: {a}, or {b}. Take whichever is quicker.",
    "I only want a rough idea, so a single one is enough: {a}, or {b}.",
    "Not sure how best to ask. Perhaps: {a}? Perhaps {b}? Choose one of them.",
    "My screen is small, so just one result please: {a}, or else {b}.",
    "To settle a bet between colleagues: {a}, alternatively {b}. Whatever convinces.",
    "There are two ways to find out, I guess, {A} and {b}. Go with the better source.",
    "I remember neither the word nor the place. It was something like {A}, or like {b}.",
    "Keep it simple and answer by one route only, be it {A} or be it {b}.",
    "Which would you rather use here, {A} or {b}? Use that, then tell me the result.",
    "Somebody left a note saying \"{a} (or {b})\". Do what the note means, once.",
    "I don't mind how you get there: {a}; {b}. No second opinion necessary.",
    "Quick one while I wait for coffee: {a}, or maybe {b}, you decide.",
    "Our guide mentions {A} and also {b} for this. Follow the first that makes sense.",
];

/// Our tool is needed, and another may help.
pub(super) const OPTIONAL: [&str; 13] = [
    "This is what I came for: {a}. If it helps, look at {b} as well, but that is up to you.",
    "Mainly I care about {A}. Background from {b} is welcome, not required.",
    "Start with {A}; go on to {b} only where something seems unclear.",
    "One thing, please: {a}. Feel free to support your answer with {b}.",
    "The important part: {a}. A remark on {b} would be a bonus.",
    "I have to decide soon: {a}. Extra context such as {b} may make it easier.",
    "For the record: {a}. Should the picture stay incomplete, add {b}.",
    "Nothing fancy: {a}. Power users might also want {b}; judge yourself.",
    "Tell me more around this subject: {a}. Dig into {b} as far as you find useful.",
    "My teacher wants evidence for {A}. Maybe {b} strengthens the argument, maybe not.",
    "Do it carefully: {a}. When in doubt, double-check against {b}.",
    "What is your take on {A}? Mention {b} if you believe it matters.",
    "Give me the essentials of {A}, optionally enriched by {b}.",
];

/// There is one tool only, and whether it is needed is open.
pub(super) const PERHAPS: [&str; 17] = [
    "In general terms: {a}. A rule of thumb is fine.",
    "If you happen to know already: {a}. Look it up only when you must.",
    "I am just curious: {a}. No precision needed.",
    "My grandmother keeps asking {topic} questions. How would you explain {A} to her?",
    "Suppose a stranger says \"{a}\". What would be a sensible reply?",
    "For a quiz I need one example {topic} question, say \"{a}\", and its likely answer.",
    "Roughly speaking, and without any rush: {a}.",
    "Do I have to worry about my {topic} at all? It started when I read: {a}.",
    "Make an educated guess first, then verify if you like: {a}.",
    "What comes to your mind when you hear of {A}?",
    "Between us, is {A} worth the effort, or is common sense enough?",
    "A catchy {topic} headline would be nice, based on {A} or on your imagination.",
    "Teach me to do it alone next time: {a}. A demonstration is optional.",
    "Pretend I have never heard the term \"{topic}\". Introduce it, perhaps by way of {A}.",
    "Earlier today you may have told me already: {a}. Repeat it or check again.",
    "Sketch how you would approach {A}; carrying it out is your choice.",
    "Yes or no: can \"{a}\" be answered from memory? Either way, try.",
];

/// One set of tools or another.
pub(super) const EXCLUSIVE: [&str; 11] = [
    "Do one of two things: {A} together with {c}, or {b}{d}. Don't mix them.",
    "Plan one is {A} plus {c}. Plan two is {b}{d}. Follow exactly one plan.",
    "I can present only one story tomorrow. Either it combines {A} and {c}, or it tells of {b}{d}.",
    "Two routes lead home: {A} with {c} on the left, {b}{d} on the right. Pick a side and stay there.",
    "The budget covers a single package. Package A has {A} and {c}; package B has {b}{d}.",
    "My boss accepts {A} backed by {c}. She equally accepts {b}{d}. Half of each she rejects.",
    "Flip a coin for me. Heads means {A} and {c}, tails means {b}{d}. Then act on it.",
    "Should I trust the pair of {A} and {c}, or rather {b}{d}? Decide, then work with your choice alone.",
    "There is an old procedure ({A}, then {c}) and a new one ({b}{d}). Whichever you choose, complete it.",
    "Team North relies on {A} and {c}. Team South relies on {b}{d}. Answer as a member of one team.",
    "Option one, {A} along with {c}; option two, {b}{d}. I leave the selection entirely to you.",
];

/// Some tools are needed, and how many more is open.
pub(super) const DEPTH: [&str; 13] = [
    "I need {A} and {b}, and as much of {c} as you find useful.",
    "Do a proper job on {A} as well as {b}. How deep you go into {c} is your decision.",
    "Give me an overview with {A} and {b} at its heart; {c} can be left for later.",
    "Investigate until you are satisfied: {a}, {b}, and where it pays off {c}.",
    "My report stands on two legs, {A} and {b}. A third one, {c}, would not hurt.",
    "Start broad. Compulsory are {A} and {b}, for the curious there is {c}.",
    "Answer thoroughly, with at least {A} plus {b}. Stop there, or continue with {c}.",
    "What do {A} and {b} say when seen side by side? Perhaps {c} explains the difference.",
    "For an audit we must document {A} and {b}. Auditors sometimes want {c} too.",
    "Build me a small dossier: {a}; {b}; possibly an appendix about {c}.",
    "I trust {A} only in connection with {b}. Consult {c} if they disagree.",
    "Everything around the {topic} subject, please: certainly {A} and {b}, conceivably {c}.",
    "Check {A} against {b}. Escalate to {c} whenever the outcome looks odd.",
];

/// It looks as if a tool were needed.
pub(super) const NOTHING: [&str; 19] = [
    "Thanks, a colleague told me everything on {A} already. I need nothing more.",
    "What kinds of {topic} questions can you help me with? Don't run anything yet.",
    "Explain in plain words what people mean by \"{topic}\". A definition is enough.",
    "Later this week I will probably ask you \"{a}\". For now only confirm that you would understand it.",
    "Is \"{a}\" a polite way to ask, or would you phrase it differently?",
    "Translate this sentence into French, without acting on it: {a}.",
    "I used to answer {topic} questions for years. Funny how time flies, isn't it?",
    "Correct my grammar, nothing else: \"{a}\".",
    "Yesterday somebody wanted to know more about {A}. Why might a person be interested in that?",
    "How many words does \"{a}\" have?",
    "Never mind the {topic} matter; I changed my mind and will handle it alone.",
    "Write a haiku inspired by the word \"{topic}\". Pure imagination, no facts.",
    "Which details would you need from me before you could deal with {A}? Only list them.",
    "Imagine you had no access to any system. What would you then say to \"{a}\"?",
    "Good morning! I hope the {topic} requests keep you busy. Have a pleasant day.",
    "Please remember for our chat: by \"the usual\" I mean {A}. Just acknowledge.",
    "Summarize my message in three words: I keep thinking about my {topic} and cannot sleep.",
    "My daughter wrote \"{a}\" in her diary. Isn't that sweet?",
    "Do you enjoy {topic} conversations more than small talk?",
];

/// What is asked already, in other words.
pub(super) const REPHRASED: [&str; 11] = [
    "Could you help me out with {A}{particulars}?",
    "I was wondering about {A}{particulars}.",
    "What can you tell me when it comes to {A}{particulars}?",
    "Mind checking something for me, namely {A}{particulars}?",
    "It is about {A}{particulars}, and I need it now.",
    "I'd appreciate a hand with {A}{particulars}.",
    "Hey, quick favour. This concerns {A}{particulars}.",
    "Any chance you deal with {A}{particulars} right away?",
    "Let me know where things stand with {A}{particulars}.",
    "The thing I need today is {A}{particulars}, nothing else.",
    "Somebody has to look into {A}{particulars}, and I picked you.",
];

/// The answer is to be in plain words.
pub(super) const PLAIN: [&str; 7] = [
    "In plain words, as if I read it aloud: {a}.",
    "I will paste your answer into a letter, so write normal sentences: {a}.",
    "No tables, no code, only prose: {a}.",
    "Explain it to my father, who has never seen a computer: {a}.",
    "Phrase the result like a radio announcer would: {a}.",
    "A friendly text message is all I want: {a}.",
    "Speak to me like a human being: {a}.",
];

/// It could be taken for another tool, but means ours.
pub(super) const APART: [&str; 7] = [
    "I don't mean {b}, only this: {a}.",
    "People often hear {b} when I say this, but I really mean: {a}.",
    "Forget about {b} for a moment, what interests me is this: {a}.",
    "This is not a question of {b}. It is simply this: {a}.",
    "Instead of {b}, today I am here for something else: {a}.",
    "Though it sounds related to {b}, please stick to what I say: {a}.",
    "We had {b} last time. This time around: {a}.",
];

/// A person has not agreed yet.
pub(super) const UNDECIDED: [&str; 11] = [
    "I am thinking about this: {a}. Check with me before you do it.",
    "Get everything ready for {A}, then wait for my word.",
    "What would happen if we went ahead with {A}? Don't change anything before I say so.",
    "Maybe this, I have not made up my mind: {a}. Ask me once more first.",
    "Describe what you are about to do for {A} and let me look at it beforehand.",
    "My colleague suggested {A}. I want to see the details and agree before it takes effect.",
    "Nothing is to be executed without my consent. With that said: {a}.",
    "Prepare {A} as a proposal; I decide afterwards.",
    "Read it back to me beforehand and hold on: {a}.",
    "Before touching a live system, tell me the consequences of {A} and hear what I say.",
    "I could be talked into {A}. Convince me, and hold off until I agree.",
];

/// A person agrees, so that a tool that has to ask first may act.
pub(super) const AGREED: [&str; 5] = [
    "I have checked it and confirm: go ahead.",
    "Yes, I am sure, you have my approval to do it now.",
    "Consider this confirmed, no need to ask again.",
    "I agree to it, please proceed at once.",
    "All details are right; carry it out.",
];

/// Other ends of a message that was said already.
pub(super) const TAILS: [&str; 5] = [
    "Thanks in advance.",
    "That is all for now.",
    "I have been wondering since this morning.",
    "Take the time you need.",
    "My colleagues would like to know too.",
];

/// What can stand before any message, to set it apart from others.
pub(super) const LEADS: [&str; 11] = [
    "We had a {topic} discussion yesterday.",
    "I am new here and still learning how {topic} requests work.",
    "This is for a workshop with twelve participants.",
    "My phone battery is almost empty, so be quick.",
    "You were recommended by an old friend of mine.",
    "It has been a long day at the office.",
    "Our whole department reads along in this chat.",
    "I tried another assistant first and was disappointed.",
    "Let me begin with an apology for my bad spelling.",
    "There is music playing in the background, ignore the mood.",
    "Today is my first day back after parental leave.",
];
