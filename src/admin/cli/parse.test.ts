import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flag, json, oneOf, optional, spelled, text, texts, whole } from '../commands/argument.ts'
import { BadArguments } from '../commands/refusal.ts'
import { names } from './command.ts'
import { completionScript } from './completion.ts'
import { helpOf, usageOf } from './help.ts'
import { faultText, parseWords } from './parse.ts'
import { Usage } from './usage.ts'

const of = {
  runId: text('the run'),
  ids: texts('the ids'),
  value: optional(json('the value')),
  limit: optional(whole('rows', { least: 1, most: 9 })),
  all: flag('all of them'),
}
const words = ['runId', 'ids']

test('words and options are arguments, and the last word takes all that follow', () => {
  const given = parseWords(['r-1', 'a', '--limit', '3', 'b', '--all', '--value', '{"n":-5}'], of, words)
  assert.deepEqual(given, { runId: 'r-1', ids: ['a', 'b'], limit: 3, all: true, value: { n: -5 } })
  assert.deepEqual(parseWords(['--run-id', 'cancel', '--ids=--x', '--ids', 'y'], of, words), {
    runId: 'cancel',
    ids: ['--x', 'y'],
  })
  assert.deepEqual(parseWords(['--value', '-5'], of, words), { value: -5 })
  assert.deepEqual(parseWords(['--', '--all'], of, words), { runId: '--all' })
})

test('an option that stands for another one takes the word behind it only where there is one too many', () => {
  const resolve = {
    tenant: optional(text('the tenant')),
    key: optional(text('the key')),
    id: optional(text('the id')),
    to: spelled(oneOf('the ending', ['done', 'failed', 'rerun']), {
      done: { value: 'done', takes: 'value' },
      failed: { value: 'failed', takes: 'error' },
      rerun: { value: 'rerun' },
    }),
    value: optional(json('the value')),
    error: optional(text('the reason')),
  }
  const read = (...typed: string[]) => parseWords(typed, resolve, ['tenant', 'key'])
  const named = { tenant: 'acme', key: 'k' }
  assert.deepEqual(read('acme', 'k', '--done'), { ...named, to: 'done' })
  assert.deepEqual(read('--done', 'acme', 'k'), { ...named, to: 'done' })
  assert.deepEqual(read('acme', 'k', '--done', '{"n":1}'), { ...named, to: 'done', value: { n: 1 } })
  assert.deepEqual(read('--failed', 'card refused', 'acme', 'k'), { ...named, to: 'failed', error: 'card refused' })
  assert.deepEqual(read('--id', 'x', '--failed', 'no'), { id: 'x', to: 'failed', error: 'no' })
  assert.deepEqual(read('--id', 'x', '--done=5'), { id: 'x', to: 'done', value: 5 })
  assert.deepEqual(read('--id', 'x', '--rerun'), { id: 'x', to: 'rerun' })
  assert.throws(() => read('--id', 'x', '--rerun=1'), /--rerun has no value/)
  assert.throws(() => read('--id', 'x', '--done', '--failed'), /--to was given 2 times/)
  assert.throws(() => read('--id', 'x', '--faild'), /Did you mean --failed\?/)
  const help = helpOf('resolve', { summary: 'end it', arguments: resolve }, {})
  assert.match(help, /--to done\|failed\|rerun +the ending; or --done \[VALUE\], --failed \[ERROR\], --rerun/)
})

test('what cannot be read is one sentence that names the option', () => {
  const refused: [string[], RegExp][] = [
    [['--limt', '3'], /^There is no option --limt\. Did you mean --limit\?$/],
    [['--limit'], /^--limit needs a value\.$/],
    [['--limit', '--all'], /^--limit needs a value; write --limit=VALUE/],
    [['--all=yes'], /^--all has no value\.$/],
    [['--limit', '1', '--limit', '2'], /^--limit was given 2 times\.$/],
  ]
  for (const [typed, said] of refused) {
    assert.throws(
      () => parseWords(typed, of, words),
      (error: Error) => error instanceof Usage && said.test(error.message),
    )
  }
  assert.throws(() => parseWords(['one', 'two'], of, ['runId']), /Unexpected word `two`/)
  const pasted = `\u001b[2J${'x'.repeat(20_000)}`
  assert.throws(() => parseWords(['one', pasted], of, ['runId']), /^Error: Unexpected word `\?\[2Jx{56}…`;/)
  const faults = new BadArguments([
    { field: 'runId', detail: 'is missing' },
    { field: 'limit', detail: 'is not a whole number' },
  ])
  assert.equal(faultText(faults, words), 'RUN_ID is missing. --limit is not a whole number.')
})

test('help and completion are made of the arguments', () => {
  const command = { summary: 'do it', arguments: of, words }
  assert.equal(usageOf('run.do', command), 'run do RUN_ID IDS…')
  const help = helpOf('run.do', command, { yes: flag('do not ask') })
  for (const part of ['onceonly run do RUN_ID IDS…', 'Do it.', '--limit LIMIT', '--all ', '--yes']) {
    assert.ok(help.includes(part), part)
  }
  assert.match(completionScript(new Map([['run.do', of]])), /"run do"\) options="--run-id --ids --value --limit --all"/)
  for (const name of ['status', 'run.cancel', 'gateway', 'completion']) assert.ok(names.includes(name), name)
  assert.ok(!names.includes('guard'), 'it needs a running server')
})
