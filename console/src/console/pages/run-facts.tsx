import type { RunView } from 'onceonly/run'
import type { ComponentChildren } from 'preact'
import { agoText, durationText, timeText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { attributeText } from '../attribute-filter.ts'
import { Facts } from '../page.tsx'

/** What a run is, where it came from and what it waits for; everything that has a page is a link. */
export function RunFacts({ run, now }: { readonly run: RunView; readonly now: number }) {
  const { runId, definition, version, state, dueAt, startedAt, endedAt, deadlineAt, cancelledAt, queue } = run
  const { restarts, parent, forkedFrom, continuedAs } = run
  const forked = run.steps.find(({ key }) => key === forkedFrom?.key)
  return (
    <Facts
      facts={[
        ['Run', <code>{runId}</code>],
        ['Definition', `${definition} v${version}`],
        ['Parent', runLink(parent)],
        ['Forked from', forkedFrom === null ? null : runLink(forkedFrom.runId)],
        ['Begins at step', forked === undefined ? null : forked.id],
        ['Restart of', runLink(restarts)],
        ['Continued as', runLink(continuedAs)],
        ['Queue', queue === null ? null : <a href={addressOf(['runs'], { queue: queue.name })}>{queue.name}</a>],
        ['Key', queue === null || queue.key === '' ? null : queue.key],
        ['Deduplicated by', queue?.dedupKey ?? null],
        ['Priority', queue === null ? null : String(queue.priority)],
        ['Let in', queue === null ? null : letInText(queue, now)],
        ['Began', timeText(startedAt)],
        ['Cancelled', cancelledAt === null ? null : timeText(cancelledAt)],
        ['Ended', endedAt === null ? null : timeText(endedAt)],
        ['Took', endedAt === null ? null : durationText(endedAt - startedAt)],
        ['Deadline', deadlineAt === null || endedAt !== null ? null : agoText(deadlineAt, now)],
        [state === 'unknown' ? 'Next probe' : 'Continues', dueAt === null ? null : agoText(dueAt, now)],
      ]}
    />
  )
}

/** What the body of the run has set; each leads to the runs that have the same. */
export function RunAttributes({ attributes }: Pick<RunView, 'attributes'>) {
  return (
    <Facts
      facts={Object.entries(attributes).map(([name, value]) => [
        name,
        <a key={name} href={addressOf(['runs'], { attributes: attributeText(name, value) })}>
          {String(value)}
        </a>,
      ])}
    />
  )
}

function letInText({ readyAt, admittedAt }: NonNullable<RunView['queue']>, now: number): string {
  if (admittedAt !== null) return agoText(admittedAt, now)
  return readyAt > now ? `not before ${agoText(readyAt, now)}` : `waits since ${agoText(readyAt, now)}`
}

export function runLink(runId: string | null): ComponentChildren {
  return runId === null ? null : <a href={addressOf(['runs', runId])}>{runId}</a>
}
