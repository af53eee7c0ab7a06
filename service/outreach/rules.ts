import type { FieldError } from '../http/problem.ts'
import { complaintsAboutCircles, targetsOf } from './flow.ts'
import { isInside } from './public-host.ts'
import { complaintAboutPath } from './scope.ts'
import type { GivenStep } from './step.ts'
import { complaintAboutTemplate } from './template.ts'

/** What a schema cannot say: how the steps refer to each other, and where a webhook may lead on this server. */
export function complaintsAboutSteps(
  steps: readonly GivenStep[],
  webhookHosts: readonly string[],
): readonly FieldError[] {
  const ids = steps.map(({ id }) => id)
  const complaints = steps.flatMap((step, at) => {
    const earlier = new Set(ids.slice(0, at))
    const first = ids.indexOf(step.id)
    const found: Readonly<Record<string, string | null>> = {
      id: first < at ? `is also the id of steps[${first}]` : null,
      ...complaintsAboutParts(step, earlier, webhookHosts),
    }
    return Object.entries(found).flatMap(([name, detail]) =>
      detail === null ? [] : [{ field: `steps[${at}].${name}`, detail }],
    )
  })
  if (complaints.length > 0) return complaints
  // Where steps lead is only known when each of them is good.
  const lost = complaintsAboutTargets(steps)
  return lost.length > 0 ? lost : complaintsAboutCircles(steps)
}

function complaintsAboutParts(
  step: GivenStep,
  earlier: ReadonlySet<string>,
  webhookHosts: readonly string[],
): Readonly<Record<string, string | null>> {
  const about = (template: string | undefined) =>
    template === undefined ? null : complaintAboutTemplate(template, earlier)
  switch (step.type) {
    case 'email':
      return { template: about(step.template), subject: about(step.subject) }
    case 'sms':
    case 'call':
      return { template: about(step.template) }
    case 'webhook':
      return { url: complaintAboutHost(new URL(step.url), webhookHosts), template: about(step.template) }
    case 'wait':
      return {}
    case 'branch':
      return { 'when.path': complaintAboutPath(step.when.path, earlier) }
  }
}

function complaintAboutHost(url: URL, webhookHosts: readonly string[]): string | null {
  if (!isInside(url, webhookHosts)) return null
  return `leads to ${url.hostname}, which is not a public address, and no operator has allowed it`
}

function complaintsAboutTargets(steps: readonly GivenStep[]): readonly FieldError[] {
  const ids = new Set(steps.map(({ id }) => id))
  return steps.flatMap((step, at) =>
    targetsOf(step).flatMap(([name, id]) =>
      typeof id === 'string' && !ids.has(id)
        ? [{ field: `steps[${at}].${name}`, detail: `names ${id}, which is no step of this sequence` }]
        : [],
    ),
  )
}
