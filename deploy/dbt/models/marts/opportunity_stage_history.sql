with changes as (

  select opportunity_id, changed_at, old_value as old_stage, new_value as new_stage, old_is_known
  from {{ ref('stg_opportunity_changes') }}
  where field = 'stagename'

),

-- Times of changes are seconds. If a deal changes twice in one, the values say which change was the first and the last.
placed as (

  select
    c.*,
    not exists (
      select 1 from changes as d
      where d.opportunity_id = c.opportunity_id and d.changed_at = c.changed_at and d.new_stage = c.old_stage
    ) as is_first,
    not exists (
      select 1 from changes as d
      where d.opportunity_id = c.opportunity_id and d.changed_at = c.changed_at and d.old_stage = c.new_stage
    ) as is_last,
    min(changed_at) over (partition by opportunity_id) as first_changed_at,
    max(changed_at) over (partition by opportunity_id) as last_changed_at
  from changes as c

),

created as (

  select opportunity_id, min(changed_at) as created_at
  from {{ ref('stg_opportunity_changes') }}
  where change_type = 'CREATE'
  group by opportunity_id

),

visits as (

  select opportunity_id, new_stage as stage_name, changed_at as entered_at, 2 as place
  from placed
  where is_last

  union all

  -- The stage before the first change. It is not known when the deal entered it, unless the copy has its creation.
  select p.opportunity_id, p.old_stage, c.created_at, 1
  from placed as p
  left join created as c on c.opportunity_id = p.opportunity_id
  where p.is_first and p.old_is_known and p.changed_at = p.first_changed_at

  union all

  -- Deals whose stage has not changed since they are in the copy.
  select o.opportunity_id, o.stage_name, coalesce(o.last_stage_change_at, o.created_at), 1
  from {{ ref('stg_opportunities') }} as o
  where not exists (select 1 from changes as c where c.opportunity_id = o.opportunity_id)

  union all

  -- A read of the deal has another stage than its last change: a change came without values.
  select o.opportunity_id, o.stage_name, greatest(o.last_stage_change_at, p.changed_at), 3
  from {{ ref('stg_opportunities') }} as o
  inner join placed as p on p.opportunity_id = o.opportunity_id
  where p.is_last and p.changed_at = p.last_changed_at and p.new_stage <> o.stage_name

),

ordered as (

  select
    opportunity_id,
    stage_name,
    entered_at,
    lead(entered_at) over (partition by opportunity_id order by entered_at nulls first, place) as left_at,
    row_number() over (partition by opportunity_id order by entered_at desc nulls last, place desc) = 1 as is_current
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
