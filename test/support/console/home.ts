/** The five systems of the home page: the button of each, and what its promise looks like in the answers. */
export const systems = [
  {
    name: 'Messages',
    button: 'Send twice',
    verdict: /^Three requests, one message: msg_[\w-]+\.$/,
    repeat: 'replayed',
  },
  { name: 'Escalations', button: 'Escalate twice', verdict: /^One escalation, ESC-\d+, of CASE-/, repeat: 'replayed' },
  { name: 'Imports', button: 'Notify twice', verdict: /parsed once: 1 reference\.$/, repeat: 'duplicate' },
  { name: 'Outreach', button: 'Replay a run', verdict: /^Replayed twice, nothing sent/, repeat: 'identical' },
  { name: 'Chat', button: 'Cut a region', verdict: /the same messages in the same order\.$/, repeat: '2 messages' },
] as const
