import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effectiveRules, selectionText } from './effective-rules.ts'
import { RetentionPolicy } from './policy.ts'
import type { RuleSelector } from './rule-selector.ts'

/** The names and texts of the rules that can apply; the rules are called a, b and so on. */
function shown(
  selectors: readonly RuleSelector[],
  cluster: string,
  namespace?: string,
): readonly string[] {
  const rules = selectors.map((selector, at) => ({
    name: String.fromCharCode(97 + at),
    selector,
    lifetime: 1_000,
  }))
  const policy = new RetentionPolicy({ rules, lifetime: 2_000 })
  return effectiveRules(policy, cluster, namespace).map((rule) =>
    `${rule.name} ${selectionText(rule, namespace)}`.trim(),
  )
}

test('effective rules: omit those of other clusters and namespaces', () => {
  const selectors = [
    { cluster: ['prod'], kind: ['Pod'] },
    { namespace: ['shop', 'cart'], type: ['Warning'] },
    { reason: ['Pulling', 'Pulled'], controller: ['kubelet'] },
  ]
  assert.deepEqual(shown(selectors, 'prod', 'shop'), [
    'a kind=Pod',
    'b Warning',
    'c reason=Pulling|Pulled controller=kubelet',
    'default',
  ])
  assert.deepEqual(shown(selectors, 'test', 'web'), [
    'c reason=Pulling|Pulled controller=kubelet',
    'default',
  ])
  assert.deepEqual(shown(selectors, 'test'), [
    'b namespace=shop|cart Warning',
    'c reason=Pulling|Pulled controller=kubelet',
    'default',
  ])
})

test('effective rules: end with a rule that matches everything', () => {
  const selectors = [{ namespace: ['shop'] }, { type: ['Warning'] }]
  assert.deepEqual(shown(selectors, 'prod', 'shop'), ['a'])
  assert.deepEqual(shown(selectors, 'prod'), ['a namespace=shop', 'b Warning', 'default'])
  assert.deepEqual(shown([{ cluster: ['prod'] }, {}], 'prod'), ['a'])
})

test('effective rules: leave events that are neither Normal nor Warning to the default', () => {
  assert.deepEqual(shown([{ type: ['Warning'] }, { type: ['Normal'] }], 'c', 'n'), [
    'a Warning',
    'b Normal',
    'default',
  ])
})
