// Stands in for a language model: decides from the user's message, so that the agent runs without network or key.
import { setTimeout } from 'node:timers/promises';
import { MockLanguageModelV4 } from 'ai/test';

export const scriptedModel = new MockLanguageModelV4({
  provider: 'scripted',
  modelId: 'shop',
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(parts(await nextStep(prompt), prompt)) }),
});

// Returns the text to answer, or the tools to call, as [name, input] pairs.
async function nextStep(prompt) {
  const texts = prompt.filter((message) => message.role === 'user').map(textOf);
  const asked = texts.at(-1);
  const results = resultsOfTurn(prompt);
  const order = asked.match(/order (\w+)/i)?.[1];
  const city = asked.match(/weather in (\w+)/i)?.[1];
  const account = asked.match(/delete account (\w+)/i)?.[1];

  if (/fail now/i.test(asked)) throw new Error('the model is not available');
  if (/slow hello/i.test(asked)) {
    await setTimeout(50);
    return asked;
  }
  if (/hello/i.test(asked)) return 'Hello! How can I help?';
  if (/remember the number/i.test(asked)) return `I will remember ${asked.match(/\d+/)}.`;
  if (/which number/i.test(asked)) {
    const told = texts.findLast((text) => /remember the number/i.test(text));
    return told ? `The number was ${told.match(/\d+/)}.` : 'I know no number.';
  }
  if (/cancel order/i.test(asked)) {
    if (results.length === 0) {
      return [
        ['cancel_order', { order_id: order, reason: 'customer request' }],
        ['get_weather', { city }],
      ];
    }
    return `Order ${order} is cancelled. ${weather(results[1], city)}`;
  }
  if (order) {
    if (results.length === 0) return [['get_order', { order_id: order }]];
    if (results.length === 1 && city) return [['get_weather', { city }]];
    const answer = `Order ${order} has ${results[0].output.value.status}.`;
    return city ? `${answer} ${weather(results[1], city)}` : answer;
  }
  if (account) {
    if (results.length === 0) return [['delete_account', { account_id: account }]];
    if (results[0].output.type === 'execution-denied') return `I did not delete account ${account}.`;
    return `Account ${account} is deleted.`;
  }
  return 'I can help with orders and the weather.';
}

function weather({ output }, city) {
  if (output.type.startsWith('error')) return `The weather in ${city} is not available.`;
  return `It is ${output.value.celsius} degrees in ${city}.`;
}

// The results of the tools called since the user's last message.
function resultsOfTurn(prompt) {
  const start = prompt.findLastIndex((message) => message.role === 'user');
  return prompt
    .slice(start)
    .filter((message) => message.role === 'tool')
    .flatMap((message) => message.content)
    .filter((part) => part.type === 'tool-result');
}

const textOf = (message) => message.content.map((part) => part.text ?? '').join('');

let callCount = 0;

function* parts(step, prompt) {
  const output = typeof step === 'string' ? step : JSON.stringify(step);
  yield { type: 'stream-start', warnings: [] };
  if (typeof step === 'string') {
    yield { type: 'text-start', id: 'text-1' };
    for (const delta of step.match(/\S+\s*/g)) yield { type: 'text-delta', id: 'text-1', delta };
    yield { type: 'text-end', id: 'text-1' };
  } else {
    for (const [toolName, args] of step) {
      const id = `call_${++callCount}`;
      const input = JSON.stringify(args);
      yield { type: 'tool-input-start', id, toolName };
      for (const delta of input.match(/.{1,12}/g)) yield { type: 'tool-input-delta', id, delta };
      yield { type: 'tool-input-end', id };
      yield { type: 'tool-call', toolCallId: id, toolName, input };
    }
  }
  yield {
    type: 'finish',
    finishReason: { unified: typeof step === 'string' ? 'stop' : 'tool-calls', raw: undefined },
    usage: {
      inputTokens: {
        total: words(JSON.stringify(prompt)),
        noCache: undefined,
        cacheRead: undefined,
        cacheWrite: undefined,
      },
      outputTokens: { total: words(output), text: undefined, reasoning: undefined },
    },
  };
}

const words = (text) => text.match(/\w+/g).length;
