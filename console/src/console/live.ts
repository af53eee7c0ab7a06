import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { api, type Rates } from './api.ts'

/** Five minutes of ticks of two seconds. */
const keptTicks = 150
/** How often ages are updated. */
const tickMs = 5_000

export interface Live {
  readonly ticks: readonly Rates[]
  /** False while the server does not answer; the browser keeps trying. */
  readonly isConnected: boolean
}

export const LiveContext = createContext<Live>({ ticks: [], isConnected: true })

/** What happens, from the moment at which the console was opened. */
export function useLiveTicks(isOpen: boolean): Live {
  const [live, setLive] = useState<Live>({ ticks: [], isConnected: true })
  useEffect(() => {
    if (!isOpen) return undefined
    let source: EventSource | null = null
    const close = () => {
      source?.close()
      source = null
    }
    const open = () => {
      close()
      source = new EventSource(`${api}/live`)
      source.addEventListener('rates', (event) => {
        const rates = JSON.parse(String(event.data)) as Rates
        setLive(({ ticks }) => ({ ticks: [...ticks, rates].slice(-keptTicks), isConnected: true }))
      })
      source.addEventListener('error', () => setLive(({ ticks }) => ({ ticks, isConnected: false })))
    }
    // A browser has six connections to a host: tabs that are not looked at, and pages that were left, keep none of them.
    const follow = () => (document.visibilityState === 'visible' ? open() : close())
    follow()
    document.addEventListener('visibilitychange', follow)
    window.addEventListener('pagehide', close)
    window.addEventListener('pageshow', followShown)
    function followShown(event: PageTransitionEvent) {
      if (event.persisted) follow()
    }
    return () => {
      document.removeEventListener('visibilitychange', follow)
      window.removeEventListener('pagehide', close)
      window.removeEventListener('pageshow', followShown)
      close()
    }
  }, [isOpen])
  return live
}

export function useLive(): Live {
  return useContext(LiveContext)
}

/** The time of the store, estimated from the last tick; updated every few seconds. */
export function useNow(): number {
  const { ticks } = useLive()
  const [, setTurn] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), tickMs)
    return () => clearInterval(timer)
  }, [])
  const last = ticks.at(-1)
  return last === undefined ? Date.now() : last.at + sinceArrival(last)
}

const arrivals = new WeakMap<Rates, number>()

function sinceArrival(rates: Rates): number {
  const at = arrivals.get(rates) ?? performance.now()
  arrivals.set(rates, at)
  return performance.now() - at
}
