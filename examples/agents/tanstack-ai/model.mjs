// Stands in for a language model: decides from the user's message, so that the agent runs without network or key.
import { setTimeout } from 'node:timers/promises';
import { BaseTextAdapter } from '@tanstack/ai/adapters';

export const scriptedText = () => new ScriptedTextAdapter({}, 'shop');

let callCount = 0;

class ScriptedTextAdapter extends BaseTextAdapter {
  name = 'scripted';

  async *chatStream({ model, messages, threadId, runId = this.generateId() }) {
    const event = (type, fields) => ({ type, model, timestamp: Date.now(), ...fields });
    yield event('RUN_STARTED', { runId, threadId });
    const step = await nextStep(messages);
    if (typeof step === 'string') {
      const messageId = this.generateId();
      yield event('TEXT_MESSAGE_START', { messageId, role: 'assistant' });
      for (const delta of step.match(/\S+\s*/g)) yield event('TEXT_MESSAGE_CONTENT', { messageId, delta });
      yield event('TEXT_MESSAGE_END', { messageId });
    } else {
      for (const [toolCallName, input] of step) {
        const toolCallId = `call_${++callCount}`;
        yield event('TOOL_CALL_START', { toolCallId, toolCallName, toolName: toolCallName });
        yield event('TOOL_CALL_ARGS', { toolCallId, delta: JSON.stringify(input) });
        yield event('TOOL_CALL_END', { toolCallId, toolCallName, toolName: toolCallName, input });
      }
    }
    const promptTokens = words(JSON.stringify(messages.map(textOf)));
    const completionTokens = words(JSON.stringify(step));
    yield event('RUN_FINISHED', {
      runId,
      threadId,
      finishReason: typeof step === 'string' ? 'stop' : 'tool_calls',
      usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
    });
  }
}

// Returns the text to answer, or the tools to call, as [name, input] pairs.
async function nextStep(messages) {
  const texts = messages.filter((message) => message.role === 'user').map(textOf);
  const asked = texts.at(-1) ?? '';
  const results = resultsOfTurn(messages);
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
    const answer = `Order ${order} has ${JSON.parse(results[0].content).status}.`;
    return city ? `${answer} ${weather(results[1], city)}` : answer;
  }
  if (account) {
    if (results.length === 0) return [['delete_account', { account_id: account }]];
    if (JSON.parse(results[0].content).error) return `I did not delete account ${account}.`;
    return `Account ${account} is deleted.`;
  }
  return 'I can help with orders and the weather.';
}

function weather({ content }, city) {
  const { celsius, error } = JSON.parse(content);
  return error ? `The weather in ${city} is not available.` : `It is ${celsius} degrees in ${city}.`;
}

// The results of the tools called since the user's last message.
function resultsOfTurn(messages) {
  const start = messages.findLastIndex((message) => message.role === 'user');
  return messages.slice(start).filter((message) => message.role === 'tool');
}

// The content of a message is a string or a list of parts.
function textOf({ content }) {
  if (Array.isArray(content)) return content.map((part) => part.text ?? '').join('');
  return content ?? '';
}

const words = (text) => text.match(/\w+/g)?.length ?? 0;
