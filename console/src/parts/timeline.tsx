import type { ComponentChildren } from 'preact'
import type { Tone } from './badge.tsx'
import { agoText, timeText } from './format.ts'

export interface Moment {
  readonly atMs: number | null
  readonly tone: Tone
  readonly title: string
  readonly about?: ComponentChildren
}

/** What happened, oldest first. */
export function Timeline({ moments, nowMs }: { readonly moments: readonly Moment[]; readonly nowMs: number }) {
  return (
    <ol class="timeline">
      {moments.map(({ atMs, tone, title, about }, at) => (
        <li key={at} class={tone}>
          <p>
            <b>{title}</b>
            {atMs === null ? null : <Time atMs={atMs} nowMs={nowMs} />}
          </p>
          {about === undefined ? null : <div class="soft">{about}</div>}
        </li>
      ))}
    </ol>
  )
}

/** How long ago, and on the second look when. */
export function Time({ atMs, nowMs }: { readonly atMs: number; readonly nowMs: number }) {
  return (
    <time dateTime={new Date(atMs).toISOString()} title={timeText(atMs)} class="faint">
      {agoText(atMs, nowMs)}
    </time>
  )
}
