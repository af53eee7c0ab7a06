import { useEffect, useState } from 'preact/hooks'
import { countText } from '../parts/format.ts'
import { api } from './api.ts'

/** Leads of a campaign by the states of their runs. */
export type Progress = Readonly<Record<string, number>>

/** What changes while a campaign runs. */
export interface Standing {
  readonly state: string
  /** Null until it is known whom the campaign is for. */
  readonly leads: number | null
  readonly progress: Progress
}

export interface Campaign extends Standing {
  readonly runId: string
  readonly campaignId: string
  readonly workspaceId: string
  readonly sequenceId: string
  readonly version: number | null
  readonly concurrency: number | null
  readonly startAt: string | null
  readonly cron: string | null
  readonly timezone: string | null
  readonly error: string | null
  readonly dueAt: string | null
  readonly startedAt: string
  readonly endedAt: string | null
}

const ends = ['succeeded', 'failed', 'cancelled']

export function ProgressBar({ leads, progress }: Pick<Standing, 'leads' | 'progress'>) {
  if (leads === null || leads === 0) return <span>no leads yet</span>
  const ended = ends.reduce((sum, state) => sum + (progress[state] ?? 0), 0)
  const words = `${countText(ended)} of ${countText(leads)} leads have ended`
  return (
    <span class="advance">
      <progress max={leads} value={ended} aria-label={words} />
      <span title={words}>{`${countText(ended)} / ${countText(leads)}`}</span>
    </span>
  )
}

/** A stream that was refused, or lost for good, is opened again this much later. */
const againMs = 5_000

/**
 * The standing of a campaign, kept up to date while its page is looked at. Null until the server has said something.
 *
 * @param turn another one follows a campaign again that had ended
 */
export function useStanding(
  runId: string,
  turn: number,
): { readonly standing: Standing | null; readonly isLive: boolean } {
  const [seen, setSeen] = useState<{ standing: Standing | null; isLive: boolean }>({ standing: null, isLive: false })
  useEffect(() => {
    let source: EventSource | null = null
    let timer: ReturnType<typeof setTimeout> | undefined
    let over = false
    const close = () => {
      clearTimeout(timer)
      source?.close()
      source = null
    }
    const open = () => {
      close()
      if (over) return
      const opened = new EventSource(`${api}/campaigns/${encodeURIComponent(runId)}/events`)
      source = opened
      opened.addEventListener('progress', (event) => {
        setSeen({ standing: JSON.parse(String(event.data)) as Standing, isLive: true })
      })
      opened.addEventListener(':ended', () => {
        over = true
        close()
        setSeen(({ standing }) => ({ standing, isLive: false }))
      })
      opened.addEventListener('error', () => {
        setSeen(({ standing }) => ({ standing, isLive: false }))
        // The browser connects again by itself, unless it was refused.
        if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, againMs)
      })
    }
    // A browser has six connections to a host: tabs that are not looked at, and pages that were left, keep none of them.
    const follow = () => (document.visibilityState === 'visible' ? open() : close())
    follow()
    document.addEventListener('visibilitychange', follow)
    window.addEventListener('pagehide', close)
    return () => {
      document.removeEventListener('visibilitychange', follow)
      window.removeEventListener('pagehide', close)
      close()
    }
  }, [runId, turn])
  return seen
}
