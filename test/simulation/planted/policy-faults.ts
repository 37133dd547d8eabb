/** Planted in retention policies: rules, their replacement, and budgets. */
import type { PlantedFault } from './planted-fault.ts'

const policy = 'src/retention/policy.ts'
const ruleSelector = 'src/retention/rule-selector.ts'
const retention = 'src/retention/retention.ts'
const evictor = 'src/retention/budgets/evictor.ts'

export const policyFaults: readonly PlantedFault[] = [
  {
    name: 'last-matching-rule-applies',
    component: 'retention policy',
    breaks: 'expiry by rule',
    mistake: 'the last rule that matches applies, which is that of events that no rule matches',
    patches: [
      {
        file: ruleSelector,
        find: 'const found = this.#matchers.find((',
        replace: 'const found = this.#matchers.findLast((',
      },
    ],
    faults: [],
  },
  {
    name: 'rule-matches-by-any-field',
    component: 'retention policy',
    breaks: 'expiry by rule',
    mistake: 'a rule applies to events that have one of its values, not all of them',
    patches: [
      {
        file: ruleSelector,
        find: 'this.#ofFields.every((isMet) => isMet(fields))',
        replace: 'this.#ofFields.some((isMet) => isMet(fields))',
      },
    ],
    faults: [],
  },
  {
    name: 'shortest-lifetime-for-all',
    component: 'retention policy',
    breaks: 'early expiry',
    mistake: 'all events get the shortest lifetime of the policy',
    patches: [
      {
        file: 'src/retention/due-feed.ts',
        find: 'const lifetime = policy().lifetimeOf(stored)',
        replace: 'const lifetime = policy().shortestMs ?? policy().lifetimeOf(stored)',
      },
    ],
    faults: [],
  },
  {
    name: 'queue-kept-for-a-new-policy',
    component: 'retention',
    breaks: 'late expiry',
    mistake: 'a new policy does not fill the queue again: events that it makes due stay',
    patches: [
      {
        file: retention,
        find: '    this.#replacing.abort()\n    this.#replacing = new AbortController()\n  }\n\n  /** One lifetime',
        replace: '  }\n\n  /** One lifetime',
      },
    ],
    faults: [],
  },
  {
    name: 'due-entry-not-rechecked',
    component: 'sweeper',
    breaks: 'early expiry',
    mistake: 'an event is deleted by the policy of the time at which it was queued',
    patches: [
      {
        file: 'src/retention/sweeper.ts',
        find: "return dueAt !== 'never' && dueAt <= clock.now()",
        replace: "return dueAt !== 'never' || clock.now() > 0",
      },
      {
        file: retention,
        find: '    this.#replacing.abort()\n    this.#replacing = new AbortController()\n  }\n\n  /** One lifetime',
        replace: '  }\n\n  /** One lifetime',
      },
    ],
    faults: [],
  },
  {
    name: 'evicts-newest-first',
    component: 'budgets',
    breaks: 'oldest first',
    mistake: 'the newest events are evicted',
    patches: [
      {
        file: evictor,
        find: "order: 'oldest',\n        selector,",
        replace: "order: 'newest',\n        selector,",
      },
    ],
    faults: [],
  },
  {
    name: 'evicts-warnings-first',
    component: 'budgets',
    breaks: 'Warnings last',
    mistake: 'Warnings are evicted before other events',
    patches: [
      {
        file: evictor,
        find: '[seenAfter(aheadMs, others), others, seenAfter(aheadMs, warnings), warnings]',
        replace: '[seenAfter(aheadMs, warnings), warnings, seenAfter(aheadMs, others), others]',
      },
    ],
    faults: [],
  },
  {
    name: 'evicts-whole-batches',
    component: 'budgets',
    breaks: 'only the excess is evicted',
    mistake: 'everything that was listed is evicted, however small the excess is',
    patches: [
      {
        file: evictor,
        find: '    if (count >= excess.events && bytes >= excess.bytes) break\n',
        replace: '',
      },
    ],
    faults: [],
  },
  {
    name: 'bytes-not-compared',
    component: 'budgets',
    breaks: 'budgets hold',
    mistake: 'a namespace with few, but long events is taken to be within its budget',
    patches: [
      {
        file: evictor,
        find: 'return excess.events > 0 || excess.bytes > 0 ? excess : undefined',
        replace: 'return excess.events > 0 ? excess : undefined',
      },
    ],
    faults: [],
  },
  {
    name: 'deletes-not-counted-in-bytes',
    component: 'sizes of namespaces',
    breaks: 'only the excess is evicted',
    mistake: 'the bytes of a deleted event stay counted',
    patches: [
      {
        file: 'src/cache/memory/namespaces.ts',
        find: '    this.resized(key, -bytes)\n',
        replace: '    this.resized(key, 0 * bytes)\n',
      },
    ],
    faults: [],
  },
  {
    name: 'cluster-budget-never-compared',
    component: 'budgets',
    breaks: 'budgets hold',
    mistake: 'budgets of clusters are looked up as those of a namespace without a name',
    patches: [
      {
        file: policy,
        find: "const per = namespace === undefined ? 'Cluster' : 'Namespace'",
        replace: "const per = namespace === '' ? 'Cluster' : 'Namespace'",
      },
    ],
    faults: [],
  },
]
