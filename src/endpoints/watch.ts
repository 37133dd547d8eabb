import type { Endpoint, EventApi } from './event-api.ts'
import { readOptions, watchPlan } from './list-query.ts'
import { negotiateWatch } from './negotiate.ts'
import { Teller } from './teller.ts'
import { WatchFeed } from './watch-feed.ts'

/**
 * GET …/events?watch=true, and the older paths under …/watch/
 *
 * The answer begins at once and has no end of its own: what goes wrong later is told in a last
 * frame. Changes are taken when the client has room for them, and not before.
 */
export function watchEvents(api: EventApi): Endpoint {
  return async (request, path, caller) => {
    const forms = api.forms.watch(negotiateWatch(request))
    const options = readOptions(request.query, path, api.group)
    const plan = watchPlan(path, options, api)
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const teller = new Teller(forms, plan.selector)
    return {
      status: 200,
      headers: { 'content-type': forms.first.contentType },
      body: new WatchFeed(api, {
        plan,
        teller,
        request: request.signal,
        access: caller.recheck,
        user: (caller.sender ?? caller.user).name,
        settle,
      }),
      longRunning: true,
      settled,
    }
  }
}
