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

/** What was stored, as text; a long one scrolls in a box of its own. */
export function StoredText({
  children,
  kind = 'stored',
}: ScrollBoxProps & { readonly kind?: 'stored' | 'then' | 'today' }) {
  return (
    <pre class={kind} {...useScroll<HTMLPreElement>()}>
      {children}
    </pre>
  )
}

/** Attributes of a box that may be smaller than what is in it: then the arrow keys scroll it, as soon as Tab is there. */
export function useScroll<Box extends HTMLElement>(): Scrolled<Box> {
  const ref = useRef<Box>(null)
  const [isSmall, setSmall] = useState(false)
  const look = () => {
    if (ref.current === null) return
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = ref.current
    // Sizes are rounded.
    setSmall(scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1)
  }
  // What is in it may have changed.
  useEffect(look)
  useEffect(() => {
    if (ref.current === null) return undefined
    const observer = new ResizeObserver(look)
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [])
  return isSmall ? { ref, tabIndex: 0 } : { ref }
}
