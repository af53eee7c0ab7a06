import type { ComponentChildren } from 'preact'

export type Tone = 'good' | 'wait' | 'bad' | 'doubt' | 'calm' | 'plain'

/** The word comes first; the colour only helps to find it. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}
