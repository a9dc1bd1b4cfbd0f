-- per day
with picked as (
  select * from silver.trips
)
select borough, count(*) as trips
from picked
join zones on zones.location_id = picked.location_id
group by borough
