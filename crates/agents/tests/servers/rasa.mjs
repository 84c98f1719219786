// An assistant of Rasa: the REST channel POST /webhooks/rest/webhook with { sender, message },
// and of its HTTP API GET /, /version, /status and /conversations/SENDER/tracker.
// A tool is a custom action; its arguments are slots. Results are not told.
import { send, serve, turn } from './shop.mjs';

const trackers = new Map();
const version = '3.6.20';
let time = 1767225600;

function trackerOf(sender) {
  if (!trackers.has(sender)) {
    const events = [
      {
        event: 'action',
        timestamp: ++time,
        name: 'action_session_start',
        policy: null,
        confidence: 1,
        action_text: null,
        hide_rule_turn: false,
      },
      { event: 'session_started', timestamp: ++time },
      listen(),
    ];
    trackers.set(sender, { events, slots: {} });
  }
  return trackers.get(sender);
}

const action = (name) => ({
  event: 'action',
  timestamp: ++time,
  name,
  policy: 'policy_0_RulePolicy',
  confidence: 1,
  action_text: null,
  hide_rule_turn: false,
});
const listen = () => action('action_listen');
const slot = (name, value) => ({ event: 'slot', timestamp: ++time, name, value });

const parseData = (text) => ({
  intent: { name: text.split(/\W/)[0].toLowerCase(), confidence: 1 },
  entities: [...text.matchAll(/\d+/g)].map(({ 0: value, index }) => ({
    entity: 'number',
    start: index,
    end: index + value.length,
    value,
  })),
  text,
  message_id: `message-${++time}`,
  metadata: {},
  intent_ranking: [],
});

// The slots that a call needs are filled, then its action runs. An action that fails is rejected.
function callEvents({ name, arguments: args, error }) {
  const filled = Object.entries(args).map(([key, value]) => slot(key, value));
  const done = action(`action_${name}`);
  return [...filled, error ? { ...done, event: 'action_execution_rejected' } : done];
}

async function webhook({ response, url, body }) {
  const { sender = 'default', message } = body ?? {};
  if (typeof message !== 'string') {
    const fields = {
      version,
      status: 'failure',
      message: "Invalid message request: 'message' is missing.",
      reason: 'BadRequest',
      details: {},
      help: null,
      code: 400,
    };
    return send(response, 400, fields);
  }
  const tracker = trackerOf(sender);
  const parse_data = parseData(message);
  const told = tracker.events.filter(({ event }) => event === 'user').map(({ text }) => text);
  tracker.events.push({
    event: 'user',
    timestamp: ++time,
    text: message,
    parse_data,
    input_channel: 'rest',
    message_id: parse_data.message_id,
    metadata: {},
  });
  let text = '';
  try {
    const { steps, text: answer, approval } = await turn([...told, message]);
    for (const call of steps.flat()) tracker.events.push(...callEvents(call));
    text = approval ? 'I cannot delete accounts.' : answer;
  } catch {
    // A failing action leaves the user without an answer; the error is in the log of the server only.
  }
  // One bubble per sentence.
  const bubbles = text.match(/[^.!?]+[.!?]?/g)?.map((sentence) => sentence.trim()) ?? [];
  for (const bubble of bubbles) {
    tracker.events.push(action('utter_answer'));
    tracker.events.push({
      event: 'bot',
      timestamp: ++time,
      text: bubble,
      data: {},
      metadata: { utter_action: 'utter_answer' },
    });
  }
  tracker.events.push(listen());
  for (const { event, name, value } of tracker.events) if (event === 'slot') tracker.slots[name] = value;
  const messages = bubbles.map((bubble) => ({ recipient_id: sender, text: bubble }));
  if (url.searchParams.get('stream') !== 'true') return send(response, 200, messages);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const bubble of messages) response.write(`${JSON.stringify(bubble)}\n`);
  return response.end();
}

function tracker({ response, params: { sender } }) {
  const { events, slots } = trackerOf(sender);
  const latest = events.findLast(({ event }) => event === 'user');
  send(response, 200, {
    sender_id: sender,
    slots,
    latest_message: latest?.parse_data ?? {},
    latest_event_time: events.at(-1).timestamp,
    followup_action: null,
    paused: false,
    events,
    latest_input_channel: latest ? 'rest' : null,
    active_loop: {},
    latest_action: { action_name: 'action_listen' },
    latest_action_name: 'action_listen',
  });
}

serve({
  'GET /': ({ response }) =>
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(`Hello from Rasa: ${version}`),
  'GET /version': ({ response }) => send(response, 200, { version, minimum_compatible_version: '3.5.0' }),
  'GET /status': ({ response }) =>
    send(response, 200, { model_file: 'models/shop.tar.gz', model_id: 'shop', num_active_training_jobs: 0 }),
  'GET /conversations/:sender/tracker': tracker,
  'GET /webhooks/rest/': ({ response }) => send(response, 200, { status: 'ok' }),
  'POST /webhooks/rest/webhook': webhook,
});
