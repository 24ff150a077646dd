with visits as (

  select opportunity_id, new_stage as stage_name, changed_at as entered_at, number
  from {{ ref('stg_stage_changes') }}

  union all

  -- The stage before the first change. It is not known when the deal entered it, unless the copy has its creation.
  select s.opportunity_id, s.old_stage, c.created_at, 0
  from {{ ref('stg_stage_changes') }} as s
  left join (
    select opportunity_id, min(changed_at) as created_at
    from {{ ref('stg_opportunity_changes') }}
    where change_type = 'CREATE'
    group by opportunity_id
  ) as c on c.opportunity_id = s.opportunity_id
  where s.number = 1 and s.old_is_known

  union all

  -- Deals whose stage has not changed since they are in the copy.
  select o.opportunity_id, o.stage_name, coalesce(o.last_stage_change_at, o.created_at), 0
  from {{ ref('stg_opportunities') }} as o
  where not exists (
    select 1 from {{ ref('stg_stage_changes') }} as s where s.opportunity_id = o.opportunity_id
  )

  union all

  -- A read of the deal has another stage than its last change: a change came without values.
  select o.opportunity_id, o.stage_name, greatest(o.last_stage_change_at, s.changed_at), s.number + 1
  from {{ ref('stg_opportunities') }} as o
  inner join {{ ref('stg_stage_changes') }} as s on s.opportunity_id = o.opportunity_id
  where s.number = s.changes and s.new_stage <> o.stage_name

),

ordered as (

  select
    opportunity_id,
    stage_name,
    entered_at,
    lead(entered_at) over (partition by opportunity_id order by number) as left_at,
    lead(number) over (partition by opportunity_id order by number) is null as is_current
  from visits

)

select
  h.opportunity_id,
  o.opportunity_name,
  o.owner_id,
  o.account_id,
  h.stage_name,
  h.entered_at,
  h.left_at,
  h.is_current,
  round(cast(
    extract(epoch from coalesce(h.left_at, current_timestamp) - h.entered_at) / 86400 as decimal(18, 4)
  ), 2) as days_in_stage
from ordered as h
inner join {{ ref('stg_opportunities') }} as o on o.opportunity_id = h.opportunity_id
