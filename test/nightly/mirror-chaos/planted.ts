/** Bugs in the mirror that a run must find: each is a realistic mistake in one place. */
import type { Patch } from '../../simulation/kernel/interception.ts'
import type { FaultKind } from './faults.ts'
import type { ViolationKind } from './history.ts'

const follower = 'src/mirror/follower.ts'
const window = 'src/mirror/write-window.ts'
const writer = 'src/registry/mirrored-event.ts'

export interface PlantedBug {
  readonly name: string
  readonly mistake: string
  readonly patches: readonly Patch[]
  /** At least one of these is found. */
  readonly finds: readonly ViolationKind[]
  /** The kinds of faults that show it soonest. */
  readonly kinds: readonly FaultKind[]
  readonly faults: number
}

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'failed-writes-dropped',
    mistake: 'a write that failed is counted as done, and is not repeated',
    patches: [
      {
        file: window,
        find: '        onRetry(error)\n',
        replace: "        return 'stored'\n",
      },
    ],
    finds: ['missing', 'outdated'],
    kinds: ['elected-link-cut', 'member-crash'],
    faults: 12,
  },
  {
    name: 'position-before-writes',
    mistake: 'the position is past a change when the change arrives, not when it is stored',
    patches: [
      {
        file: window,
        find: '    const entry = this.#append(write.version, write.bytes)\n',
        replace: `    const entry = this.#append(write.version, write.bytes)
    if (write.version !== undefined) this.#moveTo(write.version)
`,
      },
    ],
    finds: ['missing', 'outdated'],
    kinds: ['member-stop', 'elected-restart', 'elected-link-cut'],
    faults: 18,
  },
  {
    name: 'no-version-compare',
    mistake: 'a state is stored whatever is stored already',
    patches: [
      {
        file: writer,
        find: "  if (current === undefined) return 'write'\n  const { uid, version } = heldBy(current)\n",
        replace:
          "  if (candidate !== undefined) return 'write'\n  const { uid, version } = heldBy(current as StoredEvent)\n",
      },
    ],
    finds: ['duplicate', 'went back', 'predecessor'],
    kinds: ['elected-restart', 'origin-link-cut'],
    faults: 6,
  },
  {
    name: 'no-fence-and-no-compare',
    mistake: 'a state is stored whatever is stored already, by a replica that is no longer elected',
    patches: [
      {
        file: writer,
        find: '{ fence: target.fence, isProbablyNew: true }',
        replace: '{ isProbablyNew: true }',
      },
      {
        file: writer,
        find: "  if (order < 0) return 'older'\n",
        replace: '',
      },
    ],
    finds: ['went back', 'predecessor', 'duplicate'],
    kinds: ['elected-stop-past-lease', 'elected-restart'],
    faults: 10,
  },
  {
    name: 'uid-not-compared',
    mistake: 'a state with another uid than the stored one is taken for its successor',
    patches: [
      {
        file: writer,
        find: "  if (order < 0) return 'older'\n",
        replace: "  if (order < 0 && uid === candidate.uid) return 'older'\n",
      },
    ],
    finds: ['predecessor'],
    kinds: ['elected-restart', 'elected-crash'],
    faults: 12,
  },
  {
    name: 'expired-resumes-from-now',
    mistake: 'after a 410 the mirror watches from the newest version, without a list',
    patches: [
      {
        file: follower,
        find: '      const current = this.#isListing ? await this.#list()',
        replace: `      if (this.#hasExpired) {
        this.#window.restart((await this.#page(1, undefined)).resourceVersion)
        this.#hasExpired = false
      }
      const current = this.#isListing ? await this.#list()`,
      },
    ],
    finds: ['missing', 'outdated'],
    kinds: ['origin-compaction'],
    faults: 3,
  },
]
