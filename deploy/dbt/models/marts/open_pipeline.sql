select
  o.stage_name,
  o.owner_id,
  u.user_name as owner_name,
  o.account_id,
  a.account_name,
  count(*) as deals,
  sum(o.amount) as amount,
  sum(cast(o.amount * o.probability / 100 as decimal(18, 2))) as expected_amount
from {{ ref('stg_opportunities') }} as o
left join {{ ref('stg_users') }} as u on u.user_id = o.owner_id
left join {{ ref('stg_accounts') }} as a on a.account_id = o.account_id
where o.is_closed is not true
group by o.stage_name, o.owner_id, u.user_name, o.account_id, a.account_name
