import { useEffect, useState } from 'preact/hooks'

/**
 * Draws again when something changes: at the next frame, and not more often than every `pauseMs`. A thousand changes
 * between two frames are drawn once.
 */
export function useChanges(subscribe: (changed: () => void) => () => void, pauseMs = 0): void {
  const [, setTurn] = useState(0)
  useEffect(() => {
    let frame: number | null = null
    let timer: ReturnType<typeof setTimeout> | null = null
    let drawnAtMs = Number.NEGATIVE_INFINITY
    const draw = () => {
      frame = null
      drawnAtMs = performance.now()
      setTurn((turn) => turn + 1)
    }
    const wait = () => {
      timer = null
      frame ??= requestAnimationFrame(draw)
    }
    const changed = () => {
      if (frame !== null || timer !== null) return
      const waitMs = drawnAtMs + pauseMs - performance.now()
      if (waitMs > 0) timer = setTimeout(wait, waitMs)
      else wait()
    }
    const unsubscribe = subscribe(changed)
    // What changed between the first drawing and now was not reported.
    changed()
    return () => {
      unsubscribe()
      if (frame !== null) cancelAnimationFrame(frame)
      if (timer !== null) clearTimeout(timer)
    }
  }, [subscribe])
}
