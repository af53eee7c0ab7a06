/** Strokes on a grid of 16; each is a picture of its page's subject. */
const paths = {
  overview: 'M2 13V9m4 4V4m4 9V7m4 6V2',
  records: 'M3 2.5h10v11H3zM5.5 6h5M5.5 8.5h5M5.5 11h3',
  guard: 'M8 1.8l5 2v4c0 3.2-2.1 5.3-5 6.4C5.1 13.1 3 11 3 7.8v-4z',
  events: 'M1.8 8h3.7l1.5 2.5h2L10.5 8h3.7M3.5 3h9l1.7 5v5H1.8V8z',
  sagas:
    'M4 4.5a1.7 1.7 0 1 0 0-.1M12 4.5a1.7 1.7 0 1 0 0-.1M8 12.5a1.7 1.7 0 1 0 0-.1M5.5 4.5h4M4.8 6l2.5 4.7M11.2 6l-2.5 4.7',
  runs: 'M2 4h5M5 8h6M9 12h5',
  campaigns: 'M2 6.5v3h2.5l6 3.5V3l-6 3.5zM13 6a3 3 0 0 1 0 4',
  streams: 'M3 2v12M8 2v12M13 2v12M3 4.5l5 3M13 6.5l-5 4',
  checklist: 'M2 4l1.3 1.3L5.5 3M8 4.2h6M2 10.5l1.3 1.3 2.2-2.3M8 10.7h6',
  data: 'M3 4c0-1.2 2.2-2 5-2s5 .8 5 2-2.2 2-5 2-5-.8-5-2v8c0 1.2 2.2 2 5 2s5-.8 5-2V4M3 8c0 1.2 2.2 2 5 2s5-.8 5-2',
  audit: 'M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8M8 4.6V8l2.3 1.6',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">
      <path d={paths[name]} stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  )
}
