import { type Ending, failed, succeeded } from '../../ledger/granted.ts'
import { rerun } from '../../ledger/operator.ts'
import { targetOf } from '../core/audit.ts'
import type { Explanation } from '../core/explain.ts'
import { json, oneOf, optional, spelled, text, texts, type Values, whole, withDefault } from './argument.ts'
import { act } from './command.ts'
import { findRecord, recordArguments, recordWords } from './records.ts'
import { badArgument } from './refusal.ts'
import { routeAnswer, successStatuses } from './route-answer.ts'

const onRecord = {
  ...recordArguments,
  ifFence: optional(whole('only if the record still has this fence', { least: 0, most: Number.MAX_SAFE_INTEGER })),
}

export const FOUND_FAILED = 'An operator found that it failed'

const endings = ['succeeded', 'failed', 'rerun'] as const

export const resolution = {
  to: spelled(oneOf('succeeded: it happened; failed: it was refused; rerun: it did not happen, try again', endings), {
    succeeded: { value: 'succeeded', takes: 'value' },
    failed: { value: 'failed', takes: 'error' },
    rerun: { value: 'rerun' },
  }),
  value: optional(json('the result, for --to succeeded: retries get it; null when left out')),
  error: optional(text('the reason, for --to failed: retries get it')),
}

const resolveArguments = {
  ...onRecord,
  ...resolution,
  status: optional(whole('of an HTTP route, the status of the response to retries', successStatuses)),
  header: withDefault(texts("a header of that response, such as 'Location: /charges/1'"), []),
}

export const recordActions = {
  release: onRecordAct('release', 'Release', {
    summary: 'take a running claim away from its holder',
    details: 'The next attempt runs, under the same effect keys.',
  }),
  forget: onRecordAct('forget', 'Forget', {
    summary: 'make an identity new again',
    details:
      'The next attempt has new effect keys: a provider cannot distinguish it from a new command. Also releases the lock of a guard.',
  }),
  resolve: act({
    summary: 'end an unknown outcome of a record or a message',
    details:
      'On an HTTP route retries get 200 with --value as their body, or 409 `response-not-stored` without a value;\n--status and --header change that response.',
    arguments: resolveArguments,
    words: recordWords,
    find: (context, args) => {
      endingOf(args)
      return findRecord(context, args)
    },
    forViewer: (found) => found,
    target: ({ to }, { record }) => ({ ...targetOf(record.identity), to }),
    question: ({ to }, found) => `Resolve as ${to}: ${nameOf(found)}?`,
    async act({ admin, actor }, args, { record }) {
      await admin.resolve(record.identity, endingOf(args), fenced(actor.by, args, record))
      return { done: true, id: record.id }
    },
  }),
}

function onRecordAct(how: 'release' | 'forget', verb: string, help: { summary: string; details: string }) {
  return act({
    ...help,
    arguments: onRecord,
    words: recordWords,
    find: (context, args) => findRecord(context, args),
    forViewer: (found) => found,
    target: (_args, { record }) => targetOf(record.identity),
    question: (_args, found) => `${verb} ${nameOf(found)}?`,
    async act({ admin, actor }, args, { record }) {
      await admin[how](record.identity, fenced(actor.by, args, record))
      return { done: true, id: record.id }
    },
  })
}

function nameOf({ record: { identity, state } }: Explanation): string {
  const { tenant, caller, operation, key } = identity
  return `${operation} of ${tenant}/${caller} under the key ${key}, which is ${state}`
}

/** A record that changed since the operator saw it is not acted on. */
function fenced(by: string, { ifFence }: Values<typeof onRecord>, { fence }: Explanation['record']) {
  return { by, ifFence: ifFence ?? fence }
}

function endingOf({ to, value, error, status, header }: Values<typeof resolveArguments>): Ending | typeof rerun {
  const isResponse = status !== undefined || header.length > 0
  if (isResponse && to !== 'succeeded') {
    throw badArgument('status', 'and header belong to the resolution `succeeded`')
  }
  switch (to) {
    case 'succeeded':
      return succeeded(isResponse ? routeAnswer({ value, status, headers: header }) : (value ?? null))
    case 'failed':
      return failed(new Error(error ?? FOUND_FAILED))
    case 'rerun':
      return rerun
  }
}
