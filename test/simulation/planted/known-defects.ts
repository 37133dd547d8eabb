/** Two defects that earlier versions had: their fixes are reverted. See docs/track-record.md. */
import type { PlantedFault } from './planted-fault.ts'

export const knownDefects: readonly PlantedFault[] = [
  {
    name: 'sweeper-trusts-wall-clock',
    component: 'timeline',
    breaks: 'early expiry',
    mistake:
      'the age of an event that no note of this process covers is the difference of two wall clocks',
    patches: [
      {
        file: 'src/retention/timeline.ts',
        find: "writtenAt(event: Pick<StoredEvent, 'version'>): number {",
        replace: "writtenAt(event: Pick<StoredEvent, 'version' | 'writtenAtMs'>): number {",
      },
      {
        file: 'src/retention/timeline.ts',
        find: 'return this.#notes[next]?.at ?? this.#clock.now()',
        replace: `const now = this.#clock.now()
    const claimed = now - (Date.now() - event.writtenAtMs)
    const earliest = this.#notes[next - 1]?.at ?? Number.NEGATIVE_INFINITY
    const latest = Math.min(now, this.#notes[next]?.at ?? now)
    return Math.min(Math.max(claimed, earliest), latest)`,
      },
      // There was no age record: a replica knew only its own notes.
      {
        file: 'src/retention/timeline.ts',
        find: 'this.#notes = withoutRedundant([...this.#notes, ...notes])',
        replace: 'this.#notes = withoutRedundant([...this.#notes, ...notes.slice(0, 0)])',
      },
    ],
    faults: ['replica-crash', 'clock-jump'],
    minutes: 6,
  },
  {
    name: 'restored-history-not-noticed',
    component: 'history proof',
    breaks: 'linearizability of reads',
    mistake: 'a stream with another history than the one that was followed is accepted',
    patches: [
      {
        file: 'src/etcd/history-proof.ts',
        find: 'if (isSame) return',
        replace: 'return',
      },
    ],
    faults: ['restore', 'link-cut', 'replica-stop'],
  },
]
