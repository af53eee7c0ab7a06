import { useState } from 'preact/hooks'
import { addressOf, navigate } from '../../parts/router.ts'
import { sinceChoices } from '../../parts/time-range.ts'
import { attributesOf } from '../attribute-filter.ts'
import { Filters } from '../page.tsx'

const states = ['queued', 'running', 'sleeping', 'unknown', 'succeeded', 'failed', 'cancelled']
const often = ['state', 'definition', 'queue', 'since', 'stuck'] as const
/** Folded until one of them is used. */
const seldom = ['scope', 'parent', 'attributes', 'from', 'before'] as const
const names = [...often, ...seldom]

type Given = Readonly<Record<(typeof names)[number], string>>

/** As they stand in the address. */
export function filtersIn(query: URLSearchParams): Given {
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Given
}

/** As the server takes them; what is empty is left out. */
export function askedOf({ from, before, since, attributes, ...rest }: Given): Readonly<Record<string, string>> {
  const asked = {
    ...rest,
    attributes: attributesOf(attributes),
    since: from === '' ? since : timeOf(from),
    before: timeOf(before),
  }
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== ''))
}

/** The browser leaves the zone out; times of the console are UTC. */
function timeOf(local: string): string {
  const at = Date.parse(`${local}Z`)
  return Number.isNaN(at) ? local : String(at)
}

export function RunFilters({ given }: { readonly given: Given }) {
  const change = (name: string, value: string) => navigate(addressOf(['runs'], { ...given, [name]: value }), 'replace')
  const isUsed = seldom.some((name) => given[name] !== '')
  // Once it is open, clearing a filter does not close it.
  const [isOpen, setOpen] = useState(isUsed)
  return (
    <>
      <Filters
        change={change}
        filters={[
          {
            name: 'state',
            label: 'State',
            value: given.state,
            choices: [{ value: '', text: 'any' }, ...states.map((value) => ({ value, text: value }))],
          },
          { name: 'definition', label: 'Definition', value: given.definition },
          { name: 'queue', label: 'Queue', value: given.queue },
          { name: 'since', label: 'Began', value: given.since, choices: sinceChoices },
          {
            name: 'stuck',
            label: 'Workers',
            value: given.stuck,
            choices: [
              { value: '', text: 'any' },
              { value: 'true', text: 'stuck: no worker' },
            ],
          },
        ]}
      />
      <details
        class="more-filters"
        open={isOpen || isUsed}
        onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      >
        <summary>More filters</summary>
        <Filters
          change={change}
          filters={[
            { name: 'scope', label: 'Scope: the id up to its slash', value: given.scope },
            { name: 'parent', label: 'Parent', value: given.parent },
            { name: 'attributes', label: 'Attribute: name=value', value: given.attributes },
            { name: 'from', label: 'Began from, UTC', value: given.from, type: 'datetime-local' },
            { name: 'before', label: 'Began before, UTC', value: given.before, type: 'datetime-local' },
          ]}
        />
      </details>
    </>
  )
}
