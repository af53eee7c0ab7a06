/** How far back a list goes, as the server understands it; in the address, so that it can be kept and sent. */
export const sinceChoices = [
  { value: '', text: 'any time' },
  { value: '15m', text: 'last 15 minutes' },
  { value: '1h', text: 'last hour' },
  { value: '6h', text: 'last 6 hours' },
  { value: '1d', text: 'last day' },
  { value: '7d', text: 'last 7 days' },
] as const
