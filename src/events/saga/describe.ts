import type { SagaDefinition, Specs } from './definition.ts'
import type { Machine } from './machine.ts'
import { INITIAL, machineOf } from './machine.ts'

/** How one pair of state and event is decided. */
export type Decided =
  | { readonly kind: 'handled'; readonly to: readonly string[] }
  | { readonly kind: 'ignored' | 'deferred' | 'fault'; readonly because: string | null }

/** The whole saga on one page. */
export interface Description {
  readonly name: string
  readonly states: readonly string[]
  readonly terminal: readonly string[]
  /** Terminal states that mean a failure. */
  readonly failed: readonly string[]
  readonly events: readonly string[]
  /** Every state, terminal ones included, with every event. */
  readonly matrix: Readonly<Record<string, Readonly<Record<string, Decided>>>>
  /** The matrix as a Markdown table. */
  readonly table: string
  /** A Mermaid state diagram. */
  readonly mermaid: string
}

/** Without a store: for documentation, and for checks that run before anything is deployed. */
export function describeSaga<Data, Events extends Specs, State extends string, Terminal extends string>(
  definition: SagaDefinition<Data, Events, State, Terminal>,
): Description {
  return describeMachine(machineOf(definition))
}

export function describeMachine(machine: Machine): Description {
  const { name, states, terminal, failed } = machine
  const events = [...machine.events.keys()]
  const all = [INITIAL, ...states, ...terminal]
  const rowOf = (state: string) => Object.fromEntries(events.map((event) => [event, decided(machine, state, event)]))
  const matrix = Object.fromEntries(all.map((state) => [state, rowOf(state)]))
  const table = tableOf(matrix, all, events)
  return { name, states, terminal, failed, events, matrix, table, mermaid: mermaidOf(machine, matrix) }
}

function decided(machine: Machine, state: string, event: string): Decided {
  if (machine.isTerminal(state)) return { kind: 'ignored', because: 'it has finished' }
  const cell = machine.cell(state, event)
  if (typeof cell === 'function') return { kind: 'handled', to: [] }
  if ('to' in cell) return { kind: 'handled', to: cell.to }
  const because = cell.because ?? null
  switch (cell.kind) {
    case 'ignore':
      return { kind: 'ignored', because }
    case 'defer':
      return { kind: 'deferred', because }
    case 'fault':
      return { kind: 'fault', because }
  }
}

function wordOf(decision: Decided): string {
  if (decision.kind !== 'handled')
    return decision.because === null ? decision.kind : `${decision.kind}: ${decision.because}`
  return decision.to.length === 0 ? 'handled' : `→ ${decision.to.join(' / ')}`
}

function tableOf(matrix: Description['matrix'], states: readonly string[], events: readonly string[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const rows = states.map((state) =>
    line([state, ...events.map((event) => wordOf(matrix[state]?.[event] ?? { kind: 'fault', because: null }))]),
  )
  return [line(['', ...events]), line(['', ...events].map(() => '---')), ...rows].join('\n')
}

/** One arrow for every pair of states, with all the events that lead along it. */
function mermaidOf(machine: Machine, matrix: Description['matrix']): string {
  const arrows = new Map<string, string[]>()
  const names = new Map([...machine.states, ...machine.terminal].map((state, index) => [state, idOf(state, index)]))
  const add = (from: string, to: string, label: string) => {
    const arrow = `${from === INITIAL ? '[*]' : names.get(from)} --> ${names.get(to)}`
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), label])
  }
  for (const [state, row] of Object.entries(matrix)) {
    for (const [event, decision] of Object.entries(row)) {
      if (decision.kind === 'handled') for (const to of decision.to) add(state, to, event)
    }
    const enter = machine.enter(state)
    if (enter !== null && typeof enter === 'object') for (const to of enter.to) add(state, to, 'on entry')
  }
  const declared = [...names].flatMap(([state, id]) =>
    state === id ? [] : [`  state ${JSON.stringify(state)} as ${id}`],
  )
  const drawn = [...arrows].map(([arrow, labels]) => `  ${arrow}: ${labels.map(labelOf).join(', ')}`)
  const ends = machine.terminal.map((state) => `  ${names.get(state)} --> [*]`)
  return ['stateDiagram-v2', ...declared, ...drawn, ...ends].join('\n')
}

/** Mermaid's own words, and what is no word, cannot name a state. */
function idOf(state: string, index: number): string {
  return /^[A-Za-z]\w*$/.test(state) && !/^(state|note|end|as|direction|default|class)$/i.test(state)
    ? state
    : `s${index}`
}

function labelOf(event: string): string {
  return event.replaceAll(/[:;\n\r]/g, ' ')
}
