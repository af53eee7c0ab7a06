import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

interface Scrolled<Box> {
  readonly ref: RefObject<Box | null>
  readonly tabIndex?: 0
}

interface ScrollBoxProps {
  readonly children: ComponentChildren
}

/** What is wider than the page scrolls in a box of its own. */
export function ScrollBox({ children }: ScrollBoxProps) {
  return (
    <div class="scrolled" {...useScroll<HTMLDivElement>()}>
      {children}
    </div>
  )
}

/** Attributes of a box that may be narrower than what is in it: then the arrow keys scroll it, as soon as Tab is there. */
export function useScroll<Box extends HTMLElement>(): Scrolled<Box> {
  const ref = useRef<Box>(null)
  const [isNarrow, setNarrow] = useState(false)
  const look = () => {
    if (ref.current !== null) setNarrow(ref.current.scrollWidth > ref.current.clientWidth)
  }
  // What is in it may have changed.
  useEffect(look)
  useEffect(() => {
    if (ref.current === null) return undefined
    const observer = new ResizeObserver(look)
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [])
  return isNarrow ? { ref, tabIndex: 0 } : { ref }
}
