import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defer, event, fault, ignore, timeout } from './definition.ts'
import { describeSaga } from './describe.ts'
import { defineSaga } from './machine.ts'

const definition = defineSaga({
  name: 'doors',
  events: {
    Opened: event<{ id: string }>({ correlate: ({ id }) => id }),
    Closed: event<{ id: string }>({ correlate: ({ id }) => id }),
    'Too: late': timeout(),
  },
  states: ['Wide open', 'Ajar'],
  terminal: ['end'],
  data: () => null,
  table: {
    initial: {
      Opened: { to: ['Wide open', 'Ajar'], handle() {} },
      Closed: { ...defer, because: 'it | was early' },
      'Too: late': fault,
    },
    'Wide open': {
      Opened: () => {},
      Closed: { to: ['Ajar', 'end'], handle() {} },
      'Too: late': { to: ['end'], handle() {} },
    },
    Ajar: { Opened: ignore, Closed: ignore, 'Too: late': { to: ['end'], handle() {} } },
  },
  onEnter: { 'Wide open': { to: ['Ajar'], handle() {} } },
})

const description = describeSaga(definition)

test('the matrix decides every state with every event, terminal states included', () => {
  assert.deepEqual(Object.keys(description.matrix), ['initial', 'Wide open', 'Ajar', 'end'])
  assert.deepEqual(description.matrix['initial']?.['Opened'], { kind: 'handled', to: ['Wide open', 'Ajar'] })
  assert.deepEqual(description.matrix['Wide open']?.['Opened'], { kind: 'handled', to: [] })
  assert.deepEqual(description.matrix['end']?.['Closed'], { kind: 'ignored', because: 'it has finished' })
  for (const row of Object.values(description.matrix)) assert.deepEqual(Object.keys(row), description.events)
})

test('the table of states is written as Markdown', () => {
  assert.deepEqual(description.table.split('\n'), [
    '|  | Opened | Closed | Too: late |',
    '| --- | --- | --- | --- |',
    '| initial | → Wide open / Ajar | deferred: it \\| was early | fault |',
    '| Wide open | handled | → Ajar / end | → end |',
    '| Ajar | ignored | ignored | → end |',
    '| end | ignored: it has finished | ignored: it has finished | ignored: it has finished |',
  ])
})

test('the diagram shows every arrow that a handler may take, and names states as Mermaid can', () => {
  assert.deepEqual(description.mermaid.split('\n'), [
    'stateDiagram-v2',
    '  state "Wide open" as s0',
    '  state "end" as s2',
    '  [*] --> s0: Opened',
    '  [*] --> Ajar: Opened',
    '  s0 --> Ajar: Closed, on entry',
    '  s0 --> s2: Closed, Too  late',
    '  Ajar --> s2: Too  late',
    '  s2 --> [*]',
  ])
})
